import { Template } from 'aws-cdk-lib/assertions';
import { EnvironmentStack } from '../../../lib/cdk';
import { loadRun } from '../../../lib/core/config/load';
import { ENV, resourcesOf, testApp } from '../../cdk/support/app';
import { specs, synthesise } from '../../templates/support/templates';
import { arnOf, nameOf, PINNED, type Resources, resolveValue } from '../../templates/support/values';
import type { Places } from './use';

const { partition, account, region } = PINNED;
const RUN_FILE =
  'name: pretrain\ncode: { source: builtin }\nmodel: { preset: gpt-tiny }\ncompute: { instanceType: ml.m5.xlarge }\n';

/** The templates whose roles the law looks at: every option, storage that is adopted or exists, and a run that the deploy submits. */
export function resourcesFor(): Record<'everything' | 'adopted' | 'existing' | 'ownStorage' | 'registered', Resources> {
  const { everything, adopted, existing, ownStorage } = specs();
  if (!everything || !adopted || !existing || !ownStorage)
    throw new Error('specs() must have the environments everything, adopted, existing and ownStorage');
  const { value: run, issues } = loadRun(RUN_FILE, []);
  if (!run) throw new Error(JSON.stringify(issues));
  const zones = `availability-zones:account=${ENV.account}:region=${ENV.region}`;
  const app = testApp({ [zones]: ['us-west-2a', 'us-west-2b', 'us-west-2c'] });
  const submissions = [{ run, team: 'nlp', runFile: RUN_FILE }];
  const stack = new EnvironmentStack(app, 'Slipway', { spec: adopted, submissions, env: ENV });
  return {
    everything: synthesise(everything),
    adopted: synthesise(adopted),
    existing: synthesise(existing),
    ownStorage: synthesise(ownStorage),
    registered: resourcesOf(Template.fromStack(stack)),
  };
}

/** What the roles of a template work on. */
export function placesIn(resources: Resources): Places {
  const idOf = (prefix: string) => {
    const types = [
      'AWS::IAM::Policy',
      'AWS::IAM::Role',
      'AWS::KMS::Alias',
      'AWS::S3::BucketPolicy',
      'AWS::SQS::QueuePolicy',
      'AWS::SNS::TopicPolicy',
    ];
    const found = Object.keys(resources).filter(
      (id) =>
        id.startsWith(prefix) &&
        /^[0-9A-F]{8}$/.test(id.slice(prefix.length)) &&
        !types.includes(resources[id]?.Type ?? ''),
    );
    if (found.length !== 1)
      throw new Error(`one resource must begin with ${prefix}, got ${found.join(', ') || 'none'}`);
    return found[0] ?? '';
  };
  const of = (prefix: string) => {
    if (prefix.startsWith('asset:')) return assetOf(resources, prefix);
    const id = idOf(prefix);
    const type = resources[id]?.Type;
    if (type === 'AWS::Lambda::Alias') return String(resolveValue(resources, { Ref: id }));
    return arnOf(resources, id) ?? nameOf(resources, id);
  };
  const isAdopted = Object.keys(resources).some((id) => id.startsWith('StorageAdopt'));
  return {
    of,
    arn: (service, rest) => `arn:${partition}:${service}:${region}:${account}:${rest}`,
    bucket: (name) => `arn:${partition}:s3:::slipway-research-${account}-${region}-${name}`,
    get dataKey() {
      return isAdopted ? `arn:${partition}:kms:${region}:${account}:key/adopted` : of('StorageKey');
    },
    get operationsKey() {
      return of('OperationsKey');
    },
  };
}

/** ARN of the file that a function reads from the CDK's bucket: it is named by its digest. */
function assetOf(resources: Resources, name: string): string {
  const type = name === 'asset:driver' ? 'Custom::SlipwayDriver' : 'Custom::SlipwayRegisteredRun';
  const properties = Object.values(resources).find(({ Type }) => Type === type)?.Properties ?? {};
  const bucket = resolveValue(resources, properties.sourceBucket ?? properties.assetBucket);
  return `arn:${partition}:s3:::${bucket}/${properties.sourceKey ?? properties.runFileKey}`;
}
