import path from 'node:path';
import { CfnGuardValidator } from '@cdklabs/cdk-validator-cfnguard';
import { Stack, Validations } from 'aws-cdk-lib';
import * as s3 from 'aws-cdk-lib/aws-s3';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { ENV, SYNTH_MS, specOf, testApp } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const RULES = path.join(__dirname, '..', '..', 'checks', 'slipway.guard');

function guardedApp() {
  const app = testApp();
  Validations.of(app).addPlugins(new CfnGuardValidator({ controlTowerRulesEnabled: false, rules: [RULES] }));
  return app;
}

test("the environment's template holds what our cfn-guard rules ask", () => {
  const app = guardedApp();
  new EnvironmentStack(app, 'Slipway', { spec: specOf({ budget: { monthlyUsd: 10 } }), env: ENV });
  expect(() => app.synth()).not.toThrow();
});

test('fails: a bucket without a public access block', () => {
  const app = guardedApp();
  const open = { blockPublicAcls: false, blockPublicPolicy: true, ignorePublicAcls: true, restrictPublicBuckets: true };
  new s3.Bucket(new Stack(app, 'Open', { env: ENV }), 'Bucket', { blockPublicAccess: new s3.BlockPublicAccess(open) });
  expect(() => app.synth()).toThrow(/buckets_are_private/);
});

test('fails: a queue in clear text', () => {
  const app = guardedApp();
  new sqs.Queue(new Stack(app, 'Clear', { env: ENV }), 'Queue', { encryption: sqs.QueueEncryption.UNENCRYPTED });
  expect(() => app.synth()).toThrow(/queues_are_encrypted/);
});
