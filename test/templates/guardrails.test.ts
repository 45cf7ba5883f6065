// The conditions on reconcile's create calls: every shipped run file passes them, and no request outside the guardrails does.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { CreateProcessingJobCommandInput, CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';
import { describe, expect, test } from 'vitest';
import type { JobGuardrails } from '../../lib/cdk/access/job-guardrails';
import { type LauncherContext, reconcileStatements } from '../../lib/cdk/access/launcher-policy';
import { hasLocalNvme, INSTANCE_TYPES } from '../../lib/core/catalog/instances/instances';
import { loadRun } from '../../lib/core/config/load';
import type { RunSpec } from '../../lib/core/config/run-spec';
import { processingJobRequest } from '../../lib/core/job/processing-request';
import { trainingJobRequest } from '../../lib/core/job/training-request';
import { permissionQuestions } from '../../lib/sandbox/access/iam-questions';
import { RUN_FILES } from '../support/run-files';
import { DESCRIPTOR, planOf, runOf } from '../support/runs';
import { evaluate, type Statement } from './support/policy';

const ROOT = path.join(__dirname, '..', '..');
const SDK = 'test/fixtures/conformance/sdk-v2';
const RUNS = [
  ...RUN_FILES.map((file) => `runs/${file}`),
  ...readdirSync(path.join(ROOT, SDK), { recursive: true, encoding: 'utf8' }).flatMap((file) =>
    file.endsWith('.yaml') ? [`${SDK}/${file}`] : [],
  ),
];

const CONTEXT: LauncherContext = {
  partition: 'aws',
  account: DESCRIPTOR.account,
  region: DESCRIPTOR.region,
  environment: DESCRIPTOR.name,
  runTableArn: 'TABLE',
  queueArn: 'QUEUE',
  checkpointBucketArn: 'CHECKPOINTS',
  artifactBucketArn: 'ARTIFACTS',
  keyArn: DESCRIPTOR.kmsKeyArn ?? '',
  operationsKeyArn: 'OPERATIONS',
};
const GUARDRAILS: JobGuardrails = {
  environment: DESCRIPTOR.name,
  teams: [DESCRIPTOR.team, 'speech'],
  keyArns: [DESCRIPTOR.kmsKeyArn ?? ''],
  subnetIds: [...DESCRIPTOR.subnetIds, 'subnet-0bbb'],
  securityGroupIds: DESCRIPTOR.securityGroupIds,
  limits: {},
};

function policyFor(more: Partial<JobGuardrails['limits']> = {}): Statement[] {
  const guardrails = { ...GUARDRAILS, limits: more };
  const targets = { passableRoleArns: ['ROLE'], topicArns: ['TOPIC'], undeliveredArn: 'UNDELIVERED', guardrails };
  return reconcileStatements(CONTEXT, targets).map(({ actions, resources, conditions, deny }) => ({
    Effect: deny ? 'Deny' : 'Allow',
    Action: actions,
    Resource: resources,
    Condition: conditions,
  }));
}

type Created = CreateTrainingJobCommandInput | CreateProcessingJobCommandInput;

/** What IAM says to a create call: on the action itself, not on the role that is passed. */
function decision(request: Created, policy = policyFor()): string {
  const operation = 'TrainingJobName' in request ? 'CreateTrainingJob' : 'CreateProcessingJob';
  const call = { service: 'SageMaker', operation, input: request, region: 'us-west-2', account: DESCRIPTOR.account };
  const [question] = permissionQuestions(call as unknown as Parameters<typeof permissionQuestions>[0], 'aws');
  if (!question) throw new Error('no question');
  return evaluate(policy, question as Parameters<typeof evaluate>[1]);
}

const requestOf = (run: RunSpec): Created =>
  run.kind === 'processing' ? processingJobRequest(planOf(run)) : trainingJobRequest(planOf(run));

/** A request of the same run with some of it changed. */
const changed = <T extends Created>(request: T, change: (copy: T) => void): T => {
  const copy = structuredClone(request);
  change(copy);
  return copy;
};

test.each(RUNS)('the request of %s passes', (file) => {
  const { value: run } = loadRun(readFileSync(path.join(ROOT, file), 'utf8'));
  if (!run) throw new Error(`${file} does not load`);
  const types = [run.compute.instanceType, ...run.compute.alternatives.map((a) => a.instanceType)];
  const groups = run.compute.instanceGroups.map((g) => g.instanceType);
  const limits = {
    allowedInstanceTypes: [...types, ...groups].filter((type) => type !== ''),
    maxRuntimeSeconds: run.limits.maxRuntimeSeconds,
    allowRemoteDebug: run.observability.remoteDebug,
    requireNetworkIsolation: run.network.isolation,
  };
  expect(decision(requestOf(run), policyFor(limits))).toBe('Allow');
});

test.each(INSTANCE_TYPES.map(({ name }) => name))(
  'the request for a run on %s passes, with a volume key where one may be',
  (name) => {
    const run = runOf({ name: 'base', code: { source: './src' }, compute: { instanceType: name, instanceCount: 1 } });
    const request = trainingJobRequest(planOf(run));
    expect(request.ResourceConfig?.VolumeKmsKeyId !== undefined).toBe(!hasLocalNvme(name));
    expect(decision(request)).toBe('Allow');
  },
);

describe('a training job outside the guardrails is denied', () => {
  const p4d = trainingJobRequest(
    planOf(
      runOf({
        name: 'base',
        code: { source: './src' },
        compute: { instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
      }),
    ),
  );
  const c5 = trainingJobRequest(
    planOf(
      runOf({ name: 'base', code: { source: './src' }, compute: { instanceType: 'ml.c5.xlarge', instanceCount: 2 } }),
    ),
  );
  const groups = ['ml.p4d.24xlarge', 'ml.c5.xlarge'].map((instanceType) => ({
    ...{ name: instanceType.slice(3, 6).replace('.', ''), instanceType, instanceCount: 1 },
  }));
  const mixed = trainingJobRequest(
    planOf(runOf({ name: 'base', code: { source: './src' }, compute: { instanceGroups: groups } })),
  );
  const policy = policyFor({ allowedInstanceTypes: ['ml.p4d.*', 'ml.c5.*'], maxRuntimeSeconds: 432_000 });
  type Mutant = [string, CreateTrainingJobCommandInput, (copy: CreateTrainingJobCommandInput) => void];
  const mutants: Mutant[] = [
    ['without a VPC', p4d, (r) => delete r.VpcConfig],
    ['in another subnet', p4d, (r) => Object.assign(r.VpcConfig ?? {}, { Subnets: ['subnet-0aaa', 'subnet-0fff'] })],
    ['with another security group', p4d, (r) => Object.assign(r.VpcConfig ?? {}, { SecurityGroupIds: ['sg-0fff'] })],
    ['without a key for its output', p4d, (r) => delete r.OutputDataConfig?.KmsKeyId],
    [
      'with another key for its output',
      p4d,
      (r) => Object.assign(r.OutputDataConfig ?? {}, { KmsKeyId: 'alias/aws/s3' }),
    ],
    ['on another instance type', p4d, (r) => Object.assign(r.ResourceConfig ?? {}, { InstanceType: 'ml.p5.48xlarge' })],
    ['for longer', p4d, (r) => Object.assign(r.StoppingCondition ?? {}, { MaxRuntimeInSeconds: 432_001 })],
    ['of another environment', p4d, (r) => Object.assign(r, { TrainingJobName: 'other-run-a001' })],
    ['of no team', p4d, (r) => Object.assign(r, { Tags: r.Tags?.filter(({ Key }) => Key !== 'slipway:team') })],
    ['of no run', p4d, (r) => Object.assign(r, { Tags: r.Tags?.filter(({ Key }) => Key !== 'slipway:run') })],
    ['with a shell in the container', p4d, (r) => Object.assign(r, { RemoteDebugConfig: { EnableRemoteDebug: true } })],
    [
      'with a foreign key for its volumes',
      c5,
      (r) => Object.assign(r.ResourceConfig ?? {}, { VolumeKmsKeyId: 'alias/aws/ebs' }),
    ],
    ['without a key for its EBS volumes', c5, (r) => delete r.ResourceConfig?.VolumeKmsKeyId],
    ['without a key for the EBS volumes of one of two groups', mixed, (r) => delete r.ResourceConfig?.VolumeKmsKeyId],
    [
      'on an alternative that is not allowed',
      p4d,
      (r) => {
        const { InstanceType: _type, ...rest } = r.ResourceConfig ?? {};
        const preferences = ['ml.p4d.24xlarge', 'ml.p5.48xlarge'].map((InstanceType) => ({ InstanceType }));
        r.ResourceConfig = {
          ...rest,
          InstancePreferences: preferences,
        } as CreateTrainingJobCommandInput['ResourceConfig'];
      },
    ],
  ];

  test('the requests themselves pass', () => {
    expect([p4d, c5, mixed].map((request) => decision(request, policy))).toEqual(['Allow', 'Allow', 'Allow']);
  });

  test.each(mutants)('fails: a job %s', (_what, request, change) => {
    expect(decision(changed(request, change), policy)).not.toBe('Allow');
  });

  test('fails: a job with a way to the network where isolation is required', () => {
    const isolated = changed(p4d, (r) => Object.assign(r, { EnableNetworkIsolation: true }));
    const strict = policyFor({ requireNetworkIsolation: true });
    expect([decision(isolated, strict), decision(p4d, strict)]).toEqual(['Allow', 'ImplicitDeny']);
  });
});

describe('a processing job outside the guardrails is denied', () => {
  const { value: run } = loadRun(readFileSync(path.join(ROOT, 'runs/data/tokenize.yaml'), 'utf8'));
  if (!run) throw new Error('runs/data/tokenize.yaml does not load');
  const request = processingJobRequest(planOf(run));
  type Mutant = [string, (copy: CreateProcessingJobCommandInput) => void];
  const mutants: Mutant[] = [
    ['without a VPC', (r) => delete r.NetworkConfig],
    ['without a key for its output', (r) => delete r.ProcessingOutputConfig?.KmsKeyId],
    ['without a key for its volumes', (r) => delete r.ProcessingResources?.ClusterConfig?.VolumeKmsKeyId],
    ['of no team', (r) => Object.assign(r, { Tags: [] })],
    [
      'on another instance type',
      (r) => Object.assign(r.ProcessingResources?.ClusterConfig ?? {}, { InstanceType: 'ml.p5.48xlarge' }),
    ],
  ];

  test.each(INSTANCE_TYPES.map(({ name }) => name))(
    'a job on %s passes, with a volume key where one may be',
    (name) => {
      const on = processingJobRequest(planOf({ ...run, compute: { ...run.compute, instanceType: name } }));
      const cluster = on.ProcessingResources?.ClusterConfig ?? {};
      expect('VolumeKmsKeyId' in cluster).toBe(!hasLocalNvme(name));
      expect(decision(on)).toBe('Allow');
      const foreign = changed(on, (r) =>
        Object.assign(r.ProcessingResources?.ClusterConfig ?? {}, { VolumeKmsKeyId: 'alias/aws/ebs' }),
      );
      expect(decision(foreign)).toBe('Deny');
    },
  );

  test.each(mutants)('fails: a job %s', (_what, change) => {
    const policy = policyFor({ allowedInstanceTypes: [run.compute.instanceType] });
    expect(decision(request, policy)).toBe('Allow');
    expect(decision(changed(request, change), policy)).not.toBe('Allow');
  });
});
