import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentStack, type RunSubmission } from '../../../lib/cdk';
import { loadRun } from '../../../lib/core/config/load';
import {
  ENV,
  everythingBefore,
  resourcesOf,
  SYNTH_MS,
  specOf,
  statementsOf,
  type TemplateResource,
  testApp,
} from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const RUN_FILE =
  'name: base\ncode: { source: builtin }\ncompute: { instanceType: ml.p4d.24xlarge, instanceCount: 2 }\n';

function templateWith(...submissions: Partial<RunSubmission>[]): Template {
  const run = loadRun(RUN_FILE).value;
  if (!run) throw new Error('the run file must be good');
  const whole = submissions.map((more) => ({ run, team: 'nlp', runFile: RUN_FILE, ...more }));
  const spec = specOf({ teams: { nlp: {}, speech: {} } });
  return Template.fromStack(new EnvironmentStack(testApp(), 'Environment', { spec, submissions: whole, env: ENV }));
}

let resources: Record<string, TemplateResource>;
let runs: TemplateResource[];
const isRun = ({ Type }: TemplateResource) => Type === 'Custom::SlipwayRegisteredRun';
const archive = { bytes: Buffer.from('archive'), sha256: 'b'.repeat(64) };

beforeAll(() => {
  resources = resourcesOf(templateWith({ code: archive }));
  runs = Object.values(resources).filter(isRun);
}, SYNTH_MS);

test('comes after everything else', () => {
  expect(runs).toHaveLength(1);
  const [id = ''] = Object.entries(resources).flatMap(([id, resource]) => (isRun(resource) ? [id] : []));
  const before = everythingBefore(resources, id);
  const others = Object.entries(resources).filter(
    ([id, { Type }]) =>
      /^Custom::Slipway|DynamoDB|ECR::Repository|S3::Bucket$|SSM::Parameter/.test(Type) && !id.startsWith('Run'),
  );
  expect(others.map(([id]) => id).filter((id) => !before.has(id))).toEqual([]);
});

test('its function may invoke the alias of its team and read its own two assets', () => {
  const statements = statementsOf(resources, 'RunbaseFunctionRole');
  const invoke = statements.filter(({ Action }) => Action === 'lambda:InvokeFunction');
  expect(JSON.stringify(invoke)).toContain('Aliasnlp');
  expect(JSON.stringify(invoke)).not.toContain('Aliasspeech');
  expect(statements.filter(({ Action }) => Action === 's3:GetObject')).toHaveLength(1);
});

test('the hash is that of the file and the code', () => {
  const hashOf = (template: Template) => Object.values(resourcesOf(template)).find(isRun)?.Properties.hash;
  const first = runs[0]?.Properties.hash;
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(hashOf(templateWith({ code: { ...archive, sha256: 'c'.repeat(64) } }))).not.toBe(first);
  expect(hashOf(templateWith({ code: archive, runFile: `${RUN_FILE}# changed\n` }))).not.toBe(first);
});

test('an environment that submits nothing has no such resource', () => {
  expect(Object.values(resourcesOf(templateWith())).filter(isRun)).toEqual([]);
});

test('fails: a team that the environment does not have', () => {
  expect(() => templateWith({ team: 'vision' })).toThrow(/must name a team of research, got vision/);
});
