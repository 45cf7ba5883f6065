import type { Scheduled, VirtualClock } from '../core/clock';
import type { SimJob } from './job';

/** Runs something later, unless the job ends before; never after an infinite time. */
export function setTimer(clock: VirtualClock, job: SimJob, ms: number, run: () => void): void {
  if (!Number.isFinite(ms)) return;
  const timer: Scheduled = clock.after(ms, () => {
    job.timers.delete(timer);
    run();
  });
  job.timers.add(timer);
}

/** Runs something later, unless the job stops or loses the instances that it has now. */
export function whileHeld(clock: VirtualClock, job: SimJob, ms: number, run: () => void): void {
  const { held, heldSince } = job;
  setTimer(clock, job, ms, () => {
    if (job.held === held && job.heldSince === heldSince && job.status === 'InProgress') run();
  });
}
