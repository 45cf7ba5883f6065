import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Construct, type IConstruct } from 'constructs';
import { expect, test } from 'vitest';
import { EnvironmentStage } from '../../../lib/cdk/environment-pipeline';
import { readEnvironments } from '../../../lib/cdk/read-environments';
import { slipwayApp } from '../../../lib/cdk/slipway-app';
import { orderReplicas } from '../../../lib/cdk/storage/checkpoint-replication';
import { SYNTH_MS, testApp } from '../support/app';

const keyIn = (region: string) => `arn:aws:kms:${region}:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab`;
const FILE = `name: one
account: "111122223333"
regions:
  us-west-2: { storage: { replicateCheckpoints: { region: us-east-1, kmsKeyArn: "${keyIn('us-east-1')}" } } }
  us-east-1: {}
`;
const EARLIER = [
  ['Slipway-one-us-west-2', ['Slipway-one-us-east-1']],
  ['Slipway-one-us-east-1', []],
];
const waits = (storages: readonly IConstruct[]) =>
  storages.map((storage) => [
    Stack.of(storage).stackName,
    storage.node.dependencies.flatMap((earlier) =>
      Stack.of(earlier) === Stack.of(storage) ? [] : [Stack.of(earlier).stackName],
    ),
  ]);

test(
  'the stack that copies waits for the one with the bucket of the copies, in an app and in a stage of a pipeline',
  async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-')), 'one.yaml');
    writeFileSync(file, FILE);
    const stacks = await slipwayApp(testApp(), { file });
    expect(waits(stacks.map(({ storage }) => storage))).toEqual(EARLIER);
    const { environments } = await readEnvironments({ file });
    const stage = new EnvironmentStage(testApp(), 'Prod', { env: { account: '111122223333' }, environments });
    expect(waits(stage.node.children.map((stack) => stack.node.findChild('Storage')))).toEqual(EARLIER);
  },
  SYNTH_MS,
);

test('regions that copy to each other, to a bucket of somebody else or to an environment of another name do not wait', () => {
  const app = new App();
  const place = (name: string, region: string, to: string, bucket?: string) => ({
    stack: { storage: new Construct(new Stack(app, `${name}-${region}`), 'Storage') },
    spec: { name, region, storage: { replicateCheckpoints: { region: to, kmsKeyArn: keyIn(to), bucket } } },
  });
  const placed = [
    place('a', 'us-west-2', 'us-east-1'),
    place('a', 'us-east-1', 'us-east-2'),
    place('a', 'us-east-2', 'us-west-2'),
    place('a', 'eu-west-1', 'us-east-1'),
    place('b', 'eu-west-1', 'us-east-1'),
    place('b', 'eu-west-2', 'eu-west-1', 'company'),
  ];
  orderReplicas(placed);
  const waiting = waits(placed.map(({ stack }) => stack.storage)).filter(([, before]) => before?.length);
  expect(waiting).toEqual([['a-eu-west-1', ['a-us-east-1']]]);
});
