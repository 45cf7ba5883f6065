import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { App, CloudFormationValidatePlugin, type PolicyValidationPluginReport } from 'aws-cdk-lib';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RememberedValidation } from '../../../lib/cdk/launcher/remembered-validation';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-validation-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const LOGS = { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 30 } };
const BAD = { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 'soon' } };

function validate(file: string, resource: object, region = 'us-west-2'): PolicyValidationPluginReport {
  const templatePath = path.join(folder, file);
  writeFileSync(templatePath, JSON.stringify({ Resources: { Logs: resource } }));
  const stack = { stackConstructPath: 'Stack', templatePath, accountId: '111122223333', region };
  const validation = new RememberedValidation(path.join(folder, 'kept'));
  return validation.validate({ stackTemplates: [stack], templatePaths: [templatePath], appConstruct: new App() });
}

/**
 * Instead of the real validator, whose rules take seconds to read: it objects to the word "soon". test/templates/validation.test.ts has the
 * real one.
 */
function quickValidator() {
  return vi.spyOn(CloudFormationValidatePlugin.prototype, 'validate').mockImplementation(({ templatePaths }) => {
    const success = !readFileSync(templatePaths[0] ?? '', 'utf8').includes('soon');
    const violations = success
      ? []
      : [
          {
            ruleName: 'R1',
            description: 'a number',
            violatingResources: [{ resourceLogicalId: 'Logs', templatePath: templatePaths[0] ?? '', locations: [] }],
          },
        ];
    return { success, violations };
  });
}

test('a template is validated once for each Region, its findings come back each time', () => {
  const real = quickValidator();

  const first = validate('a.json', BAD);
  const second = validate('b.json', BAD);
  validate('b.json', BAD, 'eu-west-1');

  expect(real).toHaveBeenCalledTimes(2);
  expect(first.violations.length).toBeGreaterThan(0);
  expect(second.violations.map(({ ruleName }) => ruleName)).toEqual(first.violations.map(({ ruleName }) => ruleName));
  expect(second.violations[0]?.violatingResources[0]?.templatePath).toBe(path.join(folder, 'b.json'));
});

test('a changed template is validated again', () => {
  quickValidator();
  expect(validate('a.json', LOGS).success).toBe(true);
  expect(validate('a.json', BAD).success).toBe(false);
  expect(validate('a.json', LOGS).success).toBe(true);
  expect(readdirSync(path.join(folder, 'kept'))).toHaveLength(2);
});

test('fails: a folder that cannot be written changes nothing in what is found', () => {
  quickValidator();
  writeFileSync(path.join(folder, 'kept'), 'a file');

  expect(validate('a.json', BAD).success).toBe(false);
});
