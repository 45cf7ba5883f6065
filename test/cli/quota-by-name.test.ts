import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CloudFormationClient, GetTemplateCommand } from '@aws-sdk/client-cloudformation';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { environmentFileOf, needsOfStack } from '../../lib/cli/environment/environment-file';
import { mockClient } from '../support/mocked-clients';

const stacks = mockClient(CloudFormationClient);
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-quota-'));
  mkdirSync(path.join(folder, 'environments'));
  writeFileSync(path.join(folder, 'environments/first.yaml'), 'name: lab\nregions: { us-west-2: {} }\n');
  writeFileSync(path.join(folder, 'environments/broken.yaml'), 'name: [\n');
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => stacks.reset());

test('a name is that of a file in environments/, whatever the file is called', () => {
  expect(environmentFileOf('lab', folder)).toBe(path.join(folder, 'environments/first.yaml'));
  expect(environmentFileOf('first', folder)).toBeUndefined();
});

const need = {
  name: 'ml.p5.48xlarge for training job usage',
  needed: 4,
  unit: 'instances',
  kind: 'pool',
  wantedBy: 'quotas.require',
};

test('without a file the stack says what it was to compare, also after a refused deploy', async () => {
  const Resources = {
    Other: { Type: 'AWS::S3::Bucket' },
    Gate: { Type: 'Custom::SlipwayQuotaPreflight', Properties: { needs: JSON.stringify([need]) } },
  };
  stacks
    .on(GetTemplateCommand, { StackName: 'Slipway-lab-us-west-2' })
    .resolves({ TemplateBody: JSON.stringify({ Resources }) });
  expect(await needsOfStack('lab', 'us-west-2')).toEqual([need]);
});

test.each(['nolab', 'Not A Name'])('fails: %s is neither', async (name) => {
  const gone = Object.assign(new Error('Stack with id Slipway-nolab-us-west-2 does not exist'), {
    name: 'ValidationError',
  });
  stacks.on(GetTemplateCommand).rejects(gone);
  await expect(needsOfStack(name, 'us-west-2')).rejects.toThrow(
    `${name}: must be a file, or the name of an environment with a file in environments/ or a stack in us-west-2, got neither`,
  );
});
