import { DeleteObjectsCommand } from '@aws-sdk/client-s3';
import { DeleteTrainingJobCommand, StopTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import type { FaultSpec } from '../../lib/sandbox/testing';
import { expectEqual, expectEvent, type FaultCase, remember } from './fault-case';
import type { Status, World } from './world';

const job = (name: string, attempt = 1) => `faults-${name}-a00${attempt}`;
const states = (status: Status) => status.attempts.map((a) => a.status);

/** A fault strikes the first attempt; the second one resumes and completes. */
function comesBack(
  n: number,
  name: string,
  injected: string,
  fault: FaultSpec,
  env: Record<string, string>,
  more?: string,
): FaultCase {
  const id = `t${n}-${name}`;
  return {
    n,
    name,
    injected,
    async run(world, seen) {
      await world.fault({ ...fault, jobName: job(id) } as FaultSpec);
      await world.launch(id, { env: { STEPS: '60', ...env }, more });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('attempts', states(status), ['Failed', 'Completed']);
      expectEqual('committed step', status.committedStep, 60);
      await resumedFrom(world, id, seen);
    },
  };
}

/** The second attempt's own line about where it began. */
async function resumedFrom(world: World, id: string, seen: { lines: string[] }): Promise<number> {
  const logs = await world.slipway('logs', id, '--json');
  const steps = logs.split('\n').flatMap((l) => /resumed from step (\d+)/.exec(l)?.[1] ?? []);
  seen.lines.push(...steps.map((s) => `log: resumed from step ${s}`));
  const last = Number(steps.at(-1) ?? 0);
  if (last === 0) throw new Error(`the second attempt began at the beginning; log lines: ${steps.join(', ')}`);
  return last;
}

const KILLED: FaultSpec = { kind: 'instance-killed', step: 33 };
const LIMITS = (limits: string) => `limits: { ${limits} }`;

export const TRAINING_CASES: readonly FaultCase[] = [
  {
    n: 8,
    name: 'capacity-error',
    injected: 'the job fails with CapacityError',
    async run(world, seen) {
      const id = 't8-capacity';
      await world.fault({ kind: 'capacity-error', jobName: job(id) });
      await world.launch(id);
      const status = await world.until(id, (s) => s.timeline.some((t) => t.what === 'attempt-ended'));
      remember(seen, status);
      expectEqual('state', status.state, 'resuming');
      const ended = status.timeline.find((t) => t.what === 'attempt-ended') as
        | { evidence?: { budgets?: { failures: number; capacityTries: number } } }
        | undefined;
      expectEqual('failures', ended?.evidence?.budgets?.failures, 0);
      expectEqual('capacity tries', ended?.evidence?.budgets?.capacityTries, 1);
      await world.tick();
      expectEqual('jobs during the back-off', await world.jobs(id), [job(id)]);
      await world.slipway('stop', id);
      expectEqual('after stop', (await world.over(id)).state, 'stopped');
    },
  },
  {
    n: 9,
    name: 'spot-interruption',
    injected: 'a spot interruption at step 20',
    async run(world, seen) {
      const id = 't9-spot';
      await world.fault({ kind: 'spot-interruption', jobName: job(id), step: 20 });
      const more = `${LIMITS('maxRuntimeSeconds: 3600, maxAttempts: 4')}\n`;
      await world.launch(id, { env: { STEPS: '40' }, more });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [job(id)]);
    },
  },
  comesBack(
    10,
    'internal-error',
    'InternalServerError beyond the retries of the service',
    { kind: 'internal-error', step: 33, times: 2 },
    {},
  ),
  comesBack(
    16,
    'instance-killed',
    'SIGKILL of every process of the instance at step 33',
    { ...KILLED, as: 'container' } as FaultSpec,
    {},
  ),
  comesBack(
    16,
    'machine-gone',
    'the machine is gone at step 33, the retries of the service too',
    { ...KILLED, times: 2 } as FaultSpec,
    {},
  ),
  {
    n: 11,
    name: 'user-code-without-progress',
    injected: 'the script leaves with code 1 before it committed anything',
    async run(world, seen) {
      const id = 't11-user-code';
      await world.launch(id, { env: { FAIL_IN_ATTEMPTS: '1,2', FAIL_AT: '2' } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'failed');
      expectEqual('jobs', await world.jobs(id), [job(id)]);
    },
  },
  {
    n: 11,
    name: 'crash-loop',
    injected: 'the script asks to be tried again (code 75) three times without committing anything',
    async run(world, seen) {
      const id = 't11-crash-loop';
      await world.launch(id, { env: { FAIL_IN_ATTEMPTS: '1,2,3', FAIL_AT: '2', FAIL_CODE: '75' } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'failed');
      expectEqual('jobs', await world.jobs(id), [job(id), job(id, 2)]);
      if (!status.reason.includes('crash loop')) throw new Error(`reason: got ${status.reason}`);
    },
  },
  {
    n: 11,
    name: 'user-code-after-progress',
    injected: 'the script leaves with code 1 at step 12, after a commit',
    async run(world, seen) {
      const id = 't11-progress';
      await world.launch(id, { env: { FAIL_IN_ATTEMPTS: '1', FAIL_AT: '12' } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('resumed from', await resumedFrom(world, id, seen), 10);
    },
  },
  {
    n: 12,
    name: 'run-time-limit',
    injected: 'limits.maxRuntimeSeconds ends the job in the middle',
    async run(world, seen) {
      const id = 't12-runtime';
      await world.launch(id, { env: { STEPS: '300' }, more: LIMITS('maxRuntimeSeconds: 20, maxAttempts: 1') });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      if (status.attempts.length < 2) throw new Error('it was never handed over');
      await resumedFrom(world, id, seen);
    },
  },
  {
    n: 17,
    name: 'checkpoint-without-marker',
    injected: 'the newest checkpoint loses its marker while the run is stopped',
    async run(world, seen) {
      const id = 't17-torn';
      await world.launch(id, { env: { STEPS: '300' } });
      await world.untilCommitted(id, 15);
      await world.slipway('stop', id);
      const stopped = await world.over(id);
      expectEqual('state', stopped.state, 'stopped');
      const newest = await dropNewestMarker(world, id);
      seen.lines.push(`removed the marker of step ${newest}`);
      await world.slipway('resume', id);
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('resumed from', await resumedFrom(world, id, seen), newest - 5);
    },
  },
  {
    n: 6,
    name: 'job-deleted-under-a-run',
    injected: 'somebody stops and deletes the job of a run',
    async run(world, seen) {
      const id = 't6-deleted';
      await world.launch(id, { env: { STEPS: '100' } });
      await world.untilCommitted(id, 5);
      await world.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: job(id) }));
      const status = await world.over(id);
      await world.sagemaker.send(new DeleteTrainingJobCommand({ TrainingJobName: job(id) }));
      remember(seen, status);
      expectEqual('state', status.state, 'stopped');
      await world.slipway('resume', id);
      const resumed = await world.over(id);
      remember(seen, resumed);
      expectEqual('state', resumed.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [job(id, 2)]);
    },
  },
  {
    n: 23,
    name: 'stop-raced-with-completion',
    injected: 'stop at the moment of the last step, and stop again when it is over',
    async run(world, seen) {
      const id = 't23-stop';
      await world.launch(id, { env: { STEPS: '10' } });
      await world.until(id, (s) => s.attempts[0]?.secondaryStatus === 'Uploading' || s.state === 'completed');
      await world.slipway('stop', id);
      const status = await world.over(id);
      await world.slipway('stop', id);
      remember(seen, status);
      if (!['completed', 'stopped'].includes(status.state)) throw new Error(`state: got ${status.state}`);
      expectEqual('jobs', await world.jobs(id), [job(id)]);
    },
  },
  {
    n: 21,
    name: 'stop-and-resume-at-once',
    injected: 'stop and resume while the job is stopping',
    async run(world, seen) {
      const id = 't21-resume';
      await world.launch(id, { env: { STEPS: '100' } });
      await world.untilCommitted(id, 5);
      await world.slipway('stop', id);
      await world.slipway('resume', id);
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEvent(status, 'resume-asked');
    },
  },
];

/** Takes the DONE object of the newest checkpoint away. Returns its step. */
async function dropNewestMarker(world: World, id: string): Promise<number> {
  const Prefix = `runs/default/${id}/`;
  const newest = Math.max(...(await world.committed(id)));
  const Objects = [{ Key: `${Prefix}step-${newest}/DONE` }];
  await world.s3.send(new DeleteObjectsCommand({ Bucket: world.bucket, Delete: { Objects } }));
  return newest;
}
