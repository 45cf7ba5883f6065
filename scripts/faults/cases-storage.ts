import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { eventually } from '../../lib/sandbox/testing';
import { expectEqual, type FaultCase, remember, type Seen } from './fault-case';
import type { Status, World } from './world';

const job = (name: string, attempt = 1) => `faults-${name}-a00${attempt}`;

/** Fails once after a commit while the control plane cannot list the checkpoints; resumes from step 10 when it can. */
function blindResume(n: number, name: string, injected: string, error: { code: string; status: number }): FaultCase {
  const id = `d${n}-${name}`;
  return {
    n,
    name,
    injected,
    alone: true,
    async run(world, seen) {
      await world.launch(id, { env: { STEPS: '30', STEP_SECONDS: '0.5', FAIL_IN_ATTEMPTS: '1', FAIL_AT: '14' } });
      await waitForMarker(world, `runs/default/${id}/step-10/DONE`);
      const target = {
        kind: 'aws-error' as const,
        service: 's3' as const,
        method: 'GET',
        path: 'checkpoints',
        times: null,
      };
      const fault = await world.fault({ ...target, ...error });
      try {
        await waitForEnd(world, id);
        for (let i = 0; i < 2; i++) await world.tick();
        expectEqual('jobs while it cannot see', await world.jobs(id), [job(id)]);
        if ((await world.hits(fault.id)) === 0) throw new Error('the fault never struck');
      } finally {
        await world.removeFault(fault.id);
      }
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      await expectResumedFrom10(world, id, seen);
    },
  };
}

/** The commit is in S3; the run may not know it yet. */
const waitForMarker = (world: World, Key: string) =>
  eventually(
    async () => {
      const { Contents = [] } = await world.s3.send(new ListObjectsV2Command({ Bucket: world.bucket, Prefix: Key }));
      return Contents.length > 0;
    },
    { what: `${Key} in the bucket`, timeoutSeconds: 60 },
  );

/** The job is over for the service; the run does not know it yet. */
const waitForEnd = (world: World, id: string) =>
  eventually(async () => (await world.jobStatuses(id)).every((status) => status !== 'InProgress'), {
    what: 'the end of the first job',
    intervalSeconds: 0.5,
  });

async function expectResumedFrom10(world: World, id: string, seen: Seen): Promise<void> {
  const logs = await world.slipway('logs', id, '--json');
  const from = logs.split('\n').flatMap((l) => /resumed from step (\d+)/.exec(l)?.[1] ?? []);
  seen.lines.push(...from.map((s) => `log: resumed from step ${s}`));
  expectEqual('resumed from', from.at(-1), '10');
}

const intended = (status: Status) => status.timeline.filter((t) => t.what === 'attempt-intended').length;

export const STORAGE_CASES: readonly FaultCase[] = [
  blindResume(18, 's3-slow-down', 'S3 answers reconcile 503 SlowDown on the checkpoint bucket', {
    code: 'SlowDown',
    status: 503,
  }),
  blindResume(26, 'bucket-denied', 'S3 denies reconcile the checkpoint bucket', { code: 'AccessDenied', status: 403 }),
  {
    n: 21,
    name: 'write-took-effect-answer-lost',
    injected: 'four writes of reconcile take effect and are answered 500',
    alone: true,
    async run(world, seen) {
      const id = 'd21-write';
      await world.launch(id, { env: { STEPS: '40' } });
      const fault = await world.fault({
        kind: 'aws-error',
        service: 'dynamodb',
        operation: 'TransactWriteItems',
        code: 'InternalServerError',
        status: 500,
        committed: true,
        times: 4,
      });
      const status = await world.over(id);
      remember(seen, status);
      if ((await world.hits(fault.id)) === 0) throw new Error('the fault never struck');
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [job(id)]);
      expectEqual('attempts intended', intended(status), 1);
    },
  },
  {
    n: 27,
    name: 'notices-cannot-be-published',
    injected: 'SNS answers 500 until it is told to work again',
    alone: true,
    async run(world, seen) {
      const id = 'd27-sns';
      const fault = await world.fault({
        kind: 'aws-error',
        service: 'sns',
        code: 'InternalError',
        status: 500,
        times: null,
      });
      await world.launch(id, { env: { STEPS: '5' } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('notices that wait', await world.outbox(id), 1);
      await world.removeFault(fault.id);
      await world.tick();
      for (let i = 0; i < 40 && (await world.outbox(id)) > 0; i++) await new Promise((r) => setTimeout(r, 500));
      expectEqual('notices that wait after SNS works', await world.outbox(id), 0);
    },
  },
  {
    n: 24,
    name: 'malformed-run',
    injected: 'a run id that makes job names too long, and 101 hyperparameters',
    async run(world, seen) {
      const long = await refusalOf(world.launch('x'.repeat(60)));
      const keys = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`k${i}`, 1]));
      const more = `hyperparameters: ${JSON.stringify(keys)}`;
      const many = await refusalOf(world.launch('d24-many', { more }));
      seen.lines.push(long, many);
      if (!/run.?id|name/i.test(long)) throw new Error(`must name the run id, got ${long}`);
      if (!many.includes('hyperparameters')) throw new Error(`must name hyperparameters, got ${many}`);
    },
  },
];

/** What the command line said; throws when it went through. */
async function refusalOf(launch: Promise<void>): Promise<string> {
  try {
    await launch;
  } catch (error) {
    const { stdout = '', stderr = '', code } = error as { stdout?: string; stderr?: string; code?: number };
    if (code !== 1 && code !== 2) throw new Error(`exit code: must be 1 or 2, got ${code}: ${stderr}`);
    return `${stdout} ${stderr}`.replace(/\s+/g, ' ').slice(0, 300);
  }
  throw new Error('must be refused, but was launched');
}
