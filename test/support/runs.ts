import type { Descriptor } from '../../lib/core/config/descriptor';
import type { Issue } from '../../lib/core/config/issue';
import { loadRun } from '../../lib/core/config/load';
import type { RuleContext } from '../../lib/core/config/rule';
import type { RunSpec } from '../../lib/core/config/run-spec';
import type { JobPlan } from '../../lib/core/job/plan';
import { checkRun } from '../../lib/core/rules';

/** A valid run of own code on two p4d; tests change what they are about. */
export const BASE = {
  name: 'base',
  code: { source: './src' },
  compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
};

/** The resolved run of a file given as plain values (JSON is YAML). */
export function runOf(file: object): RunSpec {
  const loaded = loadRun(JSON.stringify(file));
  if (!loaded.value) throw new Error(JSON.stringify(loaded.issues));
  return loaded.value;
}

/** Issues of the rules whose id begins with `prefix`. */
export function issuesOf(file: object, prefix: string, context: RuleContext = {}): Issue[] {
  return checkRun(runOf(file), context).filter((i) => i.rule.startsWith(prefix));
}

export const DESCRIPTOR: Descriptor = {
  schemaVersion: 1,
  name: 'research',
  team: 'nlp',
  partition: 'aws',
  account: '111122223333',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-execution',
  processingRoleArn: 'arn:aws:iam::111122223333:role/slipway-research-us-west-2-nlp-processing',
  dataBucket: 'data-bucket',
  checkpointBucket: 'checkpoint-bucket',
  artifactBucket: 'artifact-bucket',
  kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/11111111-2222-3333-4444-555555555555',
  subnetIds: ['subnet-0aaa'],
  securityGroupIds: ['sg-0ccc'],
  trainingImageUri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/slipway-research:abc',
  driver: { uri: 's3://artifact-bucket/drivers/0f3a9c/', hash: '0f3a9c' },
};

/** The first attempt of a run in that environment. */
export const planOf = (run: RunSpec): JobPlan => ({
  run,
  descriptor: DESCRIPTOR,
  region: 'us-west-2',
  runId: 'base-261101090000',
  attempt: 1,
  configHash: 'c',
  driver: { uri: 's3://artifact-bucket/drivers/0f3a9c/', hash: '0f3a9c' },
  resumeFrom: '',
  restartSecret: 's',
});

/** Fields of a run of Llama 3 8B on two P5 instances, which the planner knows. */
export const PLANNABLE = {
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 64, steps: 1000 },
  code: { source: 'builtin' },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 2 },
};
