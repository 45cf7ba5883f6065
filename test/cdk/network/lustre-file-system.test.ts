// A file system over the data bucket: what its key must allow, and what must outlive the stack with it.
import { Template } from 'aws-cdk-lib/assertions';
import { expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../../lib/cdk';
import { ENV, resourcesOf, SYNTH_MS, specOf, testApp } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const templateOf = (retain: boolean) =>
  Template.fromStack(
    new EnvironmentStack(testApp(), 'Lustre', {
      spec: specOf({
        network: { availabilityZoneIds: ['usw2-az1', 'usw2-az2'] },
        storage: { retain, fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' } },
      }),
      env: ENV,
    }),
  );

const retained = resourcesOf(templateOf(true));
const deleted = resourcesOf(templateOf(false));

/** Logical ids that a value of a template refers to. */
const idsIn = (value: unknown): string[] =>
  [...JSON.stringify(value).matchAll(/"(?:Ref|Fn::GetAtt)":(?:\[)?"([^"]+)"/g)].map(([, id = '']) => id);

const ofType = (resources: typeof retained, type: string) =>
  Object.entries(resources).filter(([, { Type }]) => Type === type);

test('the key of the data bucket lets the service-linked role of a file system use it for that bucket, and for nothing else', () => {
  const statements = ofType(retained, 'AWS::KMS::Key').flatMap(
    ([, { Properties }]) =>
      (Properties.KeyPolicy as { Statement: { Sid?: string; Action: unknown; Condition: object }[] }).Statement,
  );
  const found = statements.filter(({ Sid }) => Sid?.startsWith('Lustre'));
  expect(found.map(({ Sid, Action }) => [Sid, Action])).toEqual([
    ['LustreDataRepository', ['kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey*', 'kms:ReEncrypt*']],
    ['LustreDataRepositoryKey', 'kms:DescribeKey'],
  ]);
  for (const { Condition } of found)
    expect(JSON.stringify(Condition)).toContain(
      'role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*',
    );
  const context = JSON.stringify(found[0]?.Condition);
  expect(context).toContain('kms:EncryptionContext:aws:s3:arn');
  expect(context).toMatch(/slipway-research-111122223333-us-west-2-data"/);
});

test('with a retained file system stays all of the network that it stands on', () => {
  const [[, system] = []] = ofType(retained, 'AWS::FSx::FileSystem');
  expect(system?.DeletionPolicy).toMatch(/^Retain/);
  const needed = new Set<string>();
  const visit = (id: string) => {
    const resource = retained[id];
    if (!resource?.Type.startsWith('AWS::EC2::') || needed.has(id)) return;
    needed.add(id);
    for (const other of idsIn(resource.Properties)) visit(other);
  };
  for (const id of idsIn(system?.Properties)) visit(id);
  const types = [...needed].map((id) => retained[id]?.Type).sort();
  expect(types).toEqual(expect.arrayContaining(['AWS::EC2::SecurityGroup', 'AWS::EC2::Subnet', 'AWS::EC2::VPC']));
  expect([...needed].filter((id) => !String(retained[id]?.DeletionPolicy).startsWith('Retain'))).toEqual([]);
});

test('without retention the file system goes, and nothing of the network is left for it', () => {
  const [[, system] = []] = ofType(deleted, 'AWS::FSx::FileSystem');
  expect(system?.DeletionPolicy).toBe('Delete');
  const kept = Object.values(deleted).filter(
    ({ Type, DeletionPolicy }) => Type.startsWith('AWS::EC2::') && /^Retain/.test(String(DeletionPolicy)),
  );
  expect(kept).toEqual([]);
});
