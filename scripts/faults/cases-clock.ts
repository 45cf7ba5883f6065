import path from 'node:path';
import { expectEqual, type FaultCase, remember } from './fault-case';

/** Ten minutes are told from none, whatever the machine is busy with. */
function expectAbout(what: string, milliseconds: number, seconds: number): void {
  if (Math.abs(milliseconds / 1000 - seconds) > 240) {
    throw new Error(`${what}: must be about ${seconds}, got ${milliseconds / 1000}`);
  }
}

/** A container whose clock and a service whose clock are ten minutes off, in opposite directions. */
function skewed(name: string, serviceAhead: number): FaultCase {
  const id = `k22-${name}`;
  return {
    n: 22,
    name,
    injected: `times of the service ${serviceAhead} s, clock of every process in the container ${-serviceAhead} s beside ours`,
    async run(world, seen) {
      await world.fault({ kind: 'clock-skew', jobName: `faults-${id}-a001`, seconds: serviceAhead });
      const env = {
        STEPS: '60',
        STEP_SECONDS: '0.15',
        SLIPWAY_WATCHDOG_SECONDS: '20',
        PYTHONPATH: path.join(__dirname, 'skew'),
        CLOCK_AHEAD_SECONDS: String(-serviceAhead),
      };
      await world.launch(id, { env });
      const running = await world.until(id, (s) => s.state === 'running' && s.attempts[0]?.startedAt != null);
      const startedAt = Date.parse(running.attempts[0]?.startedAt ?? '');
      expectAbout('seconds from our clock to the start that the service tells', startedAt - Date.now(), serviceAhead);
      const status = await world.over(id);
      remember(seen, status);
      const clock = (await world.slipway('logs', id, '--json')).split('\n').find((l) => l.includes('clock:'));
      seen.lines.push(`log: ${clock?.slice(0, 200)}`);
      const inContainer = Number(/clock: (\d+)/.exec(clock ?? '')?.[1]) * 1000;
      expectAbout("seconds from the service's clock to the container's", inContainer - startedAt, -2 * serviceAhead);
      expectEqual('state', status.state, 'completed');
      expectEqual('jobs', await world.jobs(id), [`faults-${id}-a001`]);
      const events = status.timeline.map((t) => t.what);
      expectEqual('stops', events.includes('stop-decided'), false);
      const { goodput, spendUsd } = status;
      if (goodput === null || goodput < 0 || goodput > 1)
        throw new Error(`goodput: must be within 0 and 1, got ${goodput}`);
      if (spendUsd === null || spendUsd < 0 || spendUsd > 1) throw new Error(`spend: must be cents, got ${spendUsd}`);
    },
  };
}

export const CLOCK_CASES: readonly FaultCase[] = [skewed('service-ahead', 600), skewed('service-behind', -600)];
