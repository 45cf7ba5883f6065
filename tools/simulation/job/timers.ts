import type { Scheduled, VirtualClock } from '../core/clock';
import type { SimJob } from './job';

/** Schedules a function unless the job ends before; an infinite delay never fires. */
export function setTimer(clock: VirtualClock, job: SimJob, ms: number, run: () => void): void {
  if (!Number.isFinite(ms)) return;
  const timer: Scheduled = clock.after(ms, () => {
    job.timers.delete(timer);
    run();
  });
  job.timers.add(timer);
}

/** Schedules a function unless the job stops or loses its current instances. */
export function whileHeld(clock: VirtualClock, job: SimJob, ms: number, run: () => void): void {
  const { held, heldSince } = job;
  setTimer(clock, job, ms, () => {
    if (job.held === held && job.heldSince === heldSince && job.status === 'InProgress') run();
  });
}
