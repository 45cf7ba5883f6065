import { expectEqual, type FaultCase, remember, type Seen } from './fault-case';
import type { World } from './world';

const WATCHDOG = { SLIPWAY_WATCHDOG_SECONDS: '5' };

/** The driver's lines about restarts in place. */
async function restarts(world: World, id: string, seen: Seen): Promise<string[]> {
  const lines = (await world.slipway('logs', id, '--json'))
    .split('\n')
    .filter((l) => l.includes('\\"event\\":\\"restart\\"'));
  seen.lines.push(...lines.map((l) => `log: ${(JSON.parse(l) as { message: string }).message}`));
  return lines;
}

/** Something stands still in the first attempt; the watchdog in the container sees it, and training goes on in place. */
function stillThenOn(
  n: number,
  name: string,
  injected: string,
  start: (world: World, id: string) => Promise<void>,
): FaultCase {
  const id = `s${n}-${name}`;
  return {
    n,
    name,
    injected,
    async run(world, seen) {
      await start(world, id);
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('committed step', status.committedStep, 60);
      if ((await restarts(world, id, seen)).length === 0) throw new Error('no restart in place was seen in the log');
    },
  };
}

export const STILL_CASES: readonly FaultCase[] = [
  stillThenOn(13, 'rank-frozen', 'SIGSTOP of the script at step 33', async (world, id) => {
    await world.fault({ kind: 'instance-frozen', jobName: `faults-${id}-a001`, step: 33, process: 'train\\.py' });
    await world.launch(id, { env: { STEPS: '60', ...WATCHDOG } });
  }),
  stillThenOn(14, 'hung-read', 'the script waits indefinitely in a read at step 33', (world, id) =>
    world.launch(id, { env: { STEPS: '60', HANG_AT: '33', ...WATCHDOG } }),
  ),
  {
    n: 15,
    name: 'quiet-phase',
    injected: 'a declared evaluation of 12 s under a watchdog of 5 s',
    async run(world, seen) {
      const id = 's15-quiet-phase';
      await world.launch(id, { env: { STEPS: '40', QUIET_AT: '20', ...WATCHDOG } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [`faults-${id}-a001`]);
      expectEqual('restarts', (await restarts(world, id, seen)).length, 0);
    },
  },
  {
    n: 28,
    name: 'loss-not-finite',
    injected: 'the script leaves with code 73 at step 12 of every attempt',
    async run(world, seen) {
      const id = 's28-loss';
      await world.launch(id, { env: { STEPS: '40', FAIL_IN_ATTEMPTS: '1,2,3,4', FAIL_AT: '12', FAIL_CODE: '73' } });
      const status = await world.over(id);
      remember(seen, status);
      expectEqual('state', status.state, 'failed');
      expectEqual('attempts', status.attempts.length, 3);
      if (!status.reason.includes('loss is not finite')) throw new Error(`reason: got ${status.reason}`);
    },
  },
];
