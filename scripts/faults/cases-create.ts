import { CreateTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import type { FaultSpec } from '../../lib/sandbox/testing';
import { expectEqual, expectEvent, type FaultCase, remember } from './fault-case';

const CREATE = 'CreateTrainingJob';
const first = (name: string) => `faults-${name}-a001`;
/** One job, one attempt, completed, whatever happened to the create call. */
function oneJob(n: number, name: string, injected: string, fault: FaultSpec, expected: string): FaultCase {
  const id = `c${n}-${name}`;
  return {
    n,
    name,
    injected,
    async run(world, seen) {
      const planned = await world.fault({ ...fault, jobName: first(id) } as FaultSpec);
      await world.launch(id);
      const status = await world.over(id);
      remember(seen, status);
      seen.lines.push(`fault struck ${await world.hits(planned.id)} times`);
      if ((await world.hits(planned.id)) === 0) throw new Error('the fault never struck');
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [first(id)]);
      expectEvent(status, expected);
    },
  };
}

export const CREATE_CASES: readonly FaultCase[] = [
  oneJob(
    1,
    'throttling',
    'two CreateTrainingJob calls answered ThrottlingException',
    { kind: 'throttling', operation: CREATE, times: 2 },
    'create-again',
  ),
  oneJob(
    2,
    'error-before-commit',
    'CreateTrainingJob answered 500, nothing created',
    { kind: 'call-error', operation: CREATE },
    'create-again',
  ),
  oneJob(
    2,
    'error-after-commit',
    'CreateTrainingJob answered 500, the job created',
    { kind: 'call-error', operation: CREATE, committed: true },
    'job-adopted',
  ),
  oneJob(
    3,
    'lost-response',
    'connection dropped after CreateTrainingJob took effect',
    { kind: 'response-lost', operation: CREATE },
    'job-adopted',
  ),
  {
    n: 4,
    name: 'duplicate-invocation',
    injected: 'reconcile invoked six times at once with the same message',
    async run(world, seen) {
      const id = 'c4-duplicate';
      await world.launch(id, { env: { STEPS: '40' } });
      const body = JSON.stringify({ kind: 'run', runId: id });
      const event = { Records: [{ messageId: 'again', body, eventSource: 'aws:sqs' }] };
      await Promise.all(Array.from({ length: 6 }, () => world.invoke(event)));
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [first(id)]);
      const intents = status.timeline.filter((t) => t.what === 'attempt-intended').length;
      expectEqual('attempts intended', intents, 1);
    },
  },
  {
    n: 5,
    name: 'late-and-foreign-events',
    injected: 'job events that are stale, repeated, of unknown jobs and of other environments, in the wrong order',
    async run(world, seen) {
      const id = 'c5-events';
      await world.launch(id);
      const event = (name: string, status: string) => ({
        source: 'aws.sagemaker',
        'detail-type': 'SageMaker Training Job State Change',
        detail: { TrainingJobName: name, TrainingJobStatus: status },
      });
      for (const status of ['Failed', 'Completed', 'InProgress', 'Failed'])
        await world.invoke(event(first(id), status));
      await world.invoke(event('faults-nobody-a001', 'Failed'));
      await world.invoke(event('another-environment-a001', 'Failed'));
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [first(id)]);
    },
  },
  {
    n: 6,
    name: 'name-collision',
    injected: 'a job of somebody else holds the name of the first attempt',
    async run(world, seen) {
      const id = 'c6-collision';
      await world.sagemaker.send(new CreateTrainingJobCommand(foreignJob(first(id))));
      await world.launch(id);
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'failed');
      if (!status.reason.includes('is not this attempt')) throw new Error(`reason: got ${status.reason}`);
    },
  },
  {
    n: 7,
    name: 'quota-at-create',
    injected: 'CreateTrainingJob answered ResourceLimitExceeded',
    async run(world, seen) {
      const id = 'c7-quota';
      const error = { code: 'ResourceLimitExceeded', message: 'account-level service limit is 0', status: 400 };
      await world.fault({ kind: 'call-error', operation: CREATE, jobName: first(id), ...error });
      await world.launch(id);
      const status = await world.until(id, (s) => s.timeline.some((t) => t.what === 'quota-wait'));
      remember(seen, status);
      expectEqual('state', status.state, 'queued');
      expectEvent(status, 'quota-wait');
      await world.slipway('stop', id);
      expectEqual('after stop', (await world.over(id)).state, 'stopped');
    },
  },
  {
    n: 26,
    name: 'access-denied-at-create',
    injected: 'CreateTrainingJob answered AccessDeniedException about iam:PassRole',
    async run(world, seen) {
      const id = 'c26-access';
      const error = { code: 'AccessDeniedException', message: 'not authorized to perform: iam:PassRole', status: 400 };
      const planned = await world.fault({
        kind: 'call-error',
        operation: CREATE,
        jobName: first(id),
        times: null,
        ...error,
      });
      await world.launch(id);
      const status = await world.over(id);
      await world.tick();
      remember(seen, status);
      expectEqual('state', status.state, 'failed');
      expectEqual('create calls', await world.hits(planned.id), 1);
    },
  },
];

function foreignJob(TrainingJobName: string) {
  return {
    TrainingJobName,
    RoleArn: 'arn:aws:iam::000000000000:role/slipway-faults-us-west-2-default-execution',
    AlgorithmSpecification: {
      TrainingImage: '000000000000.dkr.ecr.us-west-2.amazonaws.com/other:1',
      TrainingInputMode: 'File' as const,
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: ['-c', 'sleep 5'],
    },
    OutputDataConfig: { S3OutputPath: 's3://slipway-faults-000000000000-us-west-2-artifacts/other/' },
    ResourceConfig: { InstanceType: 'ml.m5.xlarge' as const, InstanceCount: 1, VolumeSizeInGB: 10 },
    StoppingCondition: { MaxRuntimeInSeconds: 600 },
  };
}
