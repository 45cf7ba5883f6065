// What may pass the endpoints of a locked network, with any credentials.
import { App, Stack } from 'aws-cdk-lib';
import { describe, expect, test } from 'vitest';
import { endpointServices, interfaceEndpointPolicy, s3EndpointPolicy } from '../../lib/cdk/network/network-endpoints';
import { ENV } from '../cdk/support/app';
import { evaluate, type Statement } from './support/policy';
import { resolveValue } from './support/values';

const OWN = ENV.account;
const OTHER = '444455556666';
const stack = new Stack(new App(), 'Test', { env: ENV });
const LAYERS = 'arn:aws:s3:::prod-us-west-2-starport-layer-bucket/layer';

const SERVER = `arn:aws:sagemaker:us-west-2:${OWN}:mlflow-tracking-server/shared`;
type Policy = ReturnType<typeof s3EndpointPolicy>;

function passes(policy: Policy, action: string, resource: string, who: string, whose: string): boolean {
  const documents = stack.resolve(policy.map((statement) => statement.toStatementJson()));
  const statements = resolveValue({}, documents) as Statement[];
  const context = { 'aws:PrincipalAccount': who, 'aws:ResourceAccount': whose };
  return (
    evaluate(statements, { principal: { aws: `arn:aws:iam::${who}:role/x` }, action, resource, context }) === 'Allow'
  );
}

describe('interface endpoints', () => {
  const names = Object.keys(
    endpointServices({ usesCodeArtifact: true, allowsRemoteDebug: true, mlflowServers: [SERVER] }),
  );

  test.each(names)('%s lets no foreign credentials pass', (name) => {
    const policy = interfaceEndpointPolicy(stack, name);
    expect(policy.length).toBeGreaterThan(0);
    for (const action of ['ecr:PutImage', 'logs:PutLogEvents', 'cloudwatch:PutMetricData', 'sts:AssumeRole'])
      expect([action, passes(policy, action, '*', OTHER, OTHER)]).toEqual([action, false]);
  });

  test.each([
    ['Logs', 'logs:PutLogEvents'],
    ['EcrApi', 'ecr:BatchGetImage'],
    ['EcrDocker', 'ecr:GetDownloadUrlForLayer'],
    ['Monitoring', 'cloudwatch:PutMetricData'],
    ['Sts', 'sts:GetCallerIdentity'],
    ['SessionManager', 'ssmmessages:OpenDataChannel'],
    ['CodeArtifact', 'codeartifact:GetAuthorizationToken'],
  ])('%s lets a job of this account call %s', (name, action) => {
    expect(passes(interfaceEndpointPolicy(stack, name), action, '*', OWN, OWN)).toBe(true);
  });

  test('Mlflow lets own credentials log to the named servers and to no other', () => {
    const policy = interfaceEndpointPolicy(stack, 'Mlflow', [SERVER]);
    const log = (server: string, who: string) => passes(policy, 'sagemaker-mlflow:LogBatch', server, who, OWN);
    expect([log(SERVER, OWN), log(`${SERVER}-2`, OWN), log(SERVER, OTHER)]).toEqual([true, false, false]);
  });

  test("images of AWS's registries may be pulled, and none pushed to another account", () => {
    const policy = interfaceEndpointPolicy(stack, 'EcrDocker');
    const registry = 'arn:aws:ecr:us-west-2:763104351884:repository/pytorch';
    expect(passes(policy, 'ecr:BatchGetImage', registry, OWN, '763104351884')).toBe(true);
    expect(passes(policy, 'ecr:PutImage', registry, OWN, '763104351884')).toBe(false);
  });

  test("fails: own credentials that write into another account's log group", () => {
    const group = `arn:aws:logs:us-west-2:${OTHER}:log-group:x:log-stream:y`;
    expect(passes(interfaceEndpointPolicy(stack, 'Logs'), 'logs:PutLogEvents', group, OWN, OTHER)).toBe(false);
  });
});

describe('the S3 endpoint', () => {
  const policy = s3EndpointPolicy(stack, ['arn:aws:s3:::lake']);

  test.each([
    ['own data with own credentials', 's3:PutObject', 'arn:aws:s3:::own/x', OWN, OWN, true],
    ['a named bucket with own credentials', 's3:GetObject', 'arn:aws:s3:::lake/x', OWN, OTHER, true],
    ['image layers, which ECR signs for', 's3:GetObject', LAYERS, '999999999999', '999999999999', true],
    ['another bucket', 's3:PutObject', 'arn:aws:s3:::elsewhere/x', OWN, OTHER, false],
    ['a named bucket with foreign credentials', 's3:PutObject', 'arn:aws:s3:::lake/x', OTHER, OTHER, false],
    ['own data with foreign credentials', 's3:GetObject', 'arn:aws:s3:::own/x', OTHER, OWN, false],
    ['image layers to be replaced', 's3:PutObject', LAYERS, OWN, '999999999999', false],
  ])('%s', (_what, action, resource, who, whose, wanted) => {
    expect(passes(policy, action, resource, who, whose)).toBe(wanted);
  });
});
