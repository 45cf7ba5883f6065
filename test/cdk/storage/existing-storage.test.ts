import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../../lib/cdk';
import { ENV, resourcesOf, SYNTH_MS, specOf, statementsOf, type TemplateResource, testApp } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const KEY = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const ZONES = { 'availability-zones:account=111122223333:region=us-west-2': ['us-west-2a', 'us-west-2b'] };
const synthesise = (storage: object) => {
  const spec = specOf({ storage, teams: { nlp: { principals: ['arn:aws:iam::111122223333:role/nlp'] } } });
  return resourcesOf(Template.fromStack(new EnvironmentStack(testApp(ZONES), 'Slipway', { spec, env: ENV })));
};
const typed = (resources: Record<string, TemplateResource>, type: string) =>
  Object.values(resources).filter(({ Type }) => Type === type);

let own: Record<string, TemplateResource>;
beforeAll(() => {
  own = synthesise({ buckets: { data: 'company-data', checkpoints: 'company-checkpoints' }, kmsKeyArn: KEY });
}, SYNTH_MS);

test('existing buckets and keys are not resources of the stack', () => {
  const names = typed(own, 'AWS::S3::Bucket').map(({ Properties }) => Properties.BucketName);
  expect(names.sort()).toEqual(
    ['access-logs', 'artifacts'].map((use) => `slipway-research-111122223333-us-west-2-${use}`),
  );
  const keys = typed(own, 'AWS::KMS::Key').map(({ Properties }) => Properties.Description);
  expect(keys).toEqual(['slipway-research: operations']);
  expect(JSON.stringify(own)).not.toContain('/slipway/storage/slipway-research/key');
});

test('they are checked before anything of the storage is made', () => {
  const [id] = Object.entries(own).find(([, { Type }]) => Type === 'Custom::SlipwayExistingStorage') ?? [''];
  expect(own[id]?.Properties).toMatchObject({
    region: 'us-west-2',
    account: '111122223333',
    buckets: '{"data":"company-data","checkpoints":"company-checkpoints"}',
    keyArn: KEY,
  });
  for (const { DependsOn } of typed(own, 'AWS::S3::Bucket')) expect(DependsOn).toContain(id);
});

test('bucket, table, repository and volumes are encrypted with the existing key', () => {
  const text = JSON.stringify([...typed(own, 'AWS::S3::Bucket'), ...typed(own, 'AWS::DynamoDB::Table')]);
  expect(text.split(KEY)).toHaveLength(3);
  expect(JSON.stringify(typed(own, 'AWS::ECR::Repository'))).toContain(KEY);
});

test.each([
  'Rolesnlpexecution',
  'Rolesnlpprocessing',
  'Accessnlpresearcher',
  'LauncherControlRole',
  'LauncherReconcileRole',
])('statements of %s name the existing buckets and the key, and none that the stack does not make', (role) => {
  const text = JSON.stringify(statementsOf(own, role));
  expect(text).toContain(role.endsWith('processing') ? 'company-data' : 'company-checkpoints');
  expect(text).toContain(KEY);
  expect(text).not.toMatch(/us-west-2-(data|checkpoints)/);
});

test('one existing bucket leaves the other one and the key to the stack', () => {
  const resources = synthesise({ buckets: { data: 'company-data' } });
  const names = typed(resources, 'AWS::S3::Bucket').map(({ Properties }) => String(Properties.BucketName));
  expect(names.map((name) => name.split('us-west-2-')[1]).sort()).toEqual(['access-logs', 'artifacts', 'checkpoints']);
  expect(typed(resources, 'AWS::KMS::Key')).toHaveLength(2);
});

test('emptying, and adoption, leave existing buckets alone', () => {
  const buckets = { data: 'company-data' };
  const [empty] = typed(synthesise({ buckets, retain: false }), 'Custom::SlipwayEmptyStorage');
  expect(JSON.stringify(empty?.Properties.bucketNames)).not.toContain('company-data');
  const [adopt] = typed(synthesise({ buckets, adopt: true }), 'Custom::SlipwayAdoptStorage');
  expect(JSON.stringify(adopt?.Properties)).not.toContain('company-data');
});

test('without the options there is no check', () => {
  expect(typed(synthesise({}), 'Custom::SlipwayExistingStorage')).toEqual([]);
});
