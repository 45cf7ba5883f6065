// What `slipway plan` says about the standing cost of an environment is counted again in its template.
import { expect, test, vi } from 'vitest';
import { standingCost } from '../../lib/shared/environment/standing-cost';
import { SYNTH_MS, specOf } from '../cdk/support/app';
import type { Resources } from './support/changes';
import { type EnvironmentValues, templateOf } from './support/family';

vi.setConfig({ testTimeout: SYNTH_MS });

const COUNTED: Readonly<Record<string, (resources: Resources) => number>> = {
  'interface endpoint in a zone': (resources) =>
    of(resources, 'AWS::EC2::VPCEndpoint')
      .filter(({ Properties }) => Properties.VpcEndpointType === 'Interface')
      .reduce((sum, { Properties }) => sum + (Properties.SubnetIds as unknown[]).length, 0),
  'NAT gateway': (resources) => of(resources, 'AWS::EC2::NatGateway').length,
  'public IPv4 address': (resources) => of(resources, 'AWS::EC2::EIP').length,
  'GiB of FSx for Lustre': (resources) =>
    of(resources, 'AWS::FSx::FileSystem').reduce((sum, { Properties }) => sum + Number(Properties.StorageCapacity), 0),
  'KMS key': (resources) => of(resources, 'AWS::KMS::Key').length,
  'CloudWatch alarm': (resources) => of(resources, 'AWS::CloudWatch::Alarm').length,
  'CloudWatch dashboard': (resources) => of(resources, 'AWS::CloudWatch::Dashboard').length,
};
const of = (resources: Resources, type: string) => Object.values(resources).filter(({ Type }) => Type === type);

const IDS = { availabilityZoneIds: ['usw2-az1', 'usw2-az2'] };
test.each<EnvironmentValues>([
  {},
  { storage: { kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab' } },
  { network: { mode: 'vpc-nat' } },
  { teams: { nlp: { dashboards: true }, speech: {} } },
  {
    network: {
      ...IDS,
      endpoints: ['ecr', 'sts'],
      packages: 'codeartifact',
      codeArtifact: { domain: 'ml', repository: 'pypi' },
    },
  },
  {
    network: IDS,
    teams: { nlp: { mlflow: ['arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared'] } },
  },
  {
    network: IDS,
    storage: { fsxLustre: { sizeGiB: 2400, zoneId: 'usw2-az2' } },
    guardrails: { allowRemoteDebug: true },
  },
])('%j', (values) => {
  const { items } = standingCost(specOf(values));
  const template = templateOf(values);
  const counted = Object.entries(COUNTED).map(([item, count]) => [item, count(template?.Resources ?? {})]);
  expect(Object.fromEntries(items.map(({ item, count }) => [item, count]))).toEqual(
    Object.fromEntries(counted.filter(([, count]) => count !== 0)),
  );
});
