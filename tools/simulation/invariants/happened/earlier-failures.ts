import type { SimMs } from '../../core/clock';
import { heldMs, type SimJob, shapeCount } from '../../job/job';
import type { SimRun } from '../../world/sim-run';
import { isReplaced, ROUNDED_MS, SHARE_TOLERANCE, UNSEEN_MS } from '../invariant';
import { trueClass } from '../true-class';

const DAY_MS = 86_400_000;
/** Ends that say nothing about the reliability of hosts and script, unless the job hung before. */
const NO_FAILURES: readonly unknown[] = ['planned', 'capacity', 'outside-stop'];

/**
 * Differences between the failures that job.json gave an attempt for its save interval and those of the jobs before it, as texts. A range is
 * allowed: a stop may follow a hang, and heartbeats and deleted jobs may not have been read.
 */
export function earlierFailures(run: SimRun): string[] {
  const jobs = run.jobs.filter((job) => !isReplaced(run, job));
  return jobs.flatMap(({ name, failuresBefore, createdAt }, place) => {
    if (!failuresBefore) return [];
    const before = jobs.slice(0, place).filter(({ startedAt }) => startedAt !== undefined);
    const { failures, nodeDays } = failuresBefore;
    return [
      ...outside(`${name}: failures before it, in job.json`, failures, failuresIn(before)),
      ...outside(`${name}: node-days before it, in job.json`, nodeDays, nodeDaysOf(before, createdAt)),
    ];
  });
}

const outside = (what: string, written: number, [least, most]: readonly [number, number]): string[] =>
  written < least || written > most ? [`${what}, are ${written}, and were ${least} to ${most}`] : [];

function failuresIn(jobs: readonly SimJob[]): [least: number, most: number] {
  const may = jobs.filter((job) => job.isHung || !NO_FAILURES.includes(trueClass(job)));
  const must = may.filter((job) => job.status === 'Failed' && !job.isHung && trueClass(job) !== 'deleted');
  return [must.length, may.length + jobs.reduce((sum, { restartedAt }) => sum + restartedAt.length, 0)];
}

/** Of the hosts that trained. A deleted job may be taken to have trained until its end was judged, which is before `next`, the next job. */
function nodeDaysOf(jobs: readonly SimJob[], next: SimMs): [least: number, most: number] {
  const nodesOf = ({ chosen, truth }: SimJob) => shapeCount(chosen ?? []) - (truth?.spec.compute.spareInstances ?? 0);
  const sum = (ofJob: (job: SimJob) => number) => jobs.reduce((days, job) => days + ofJob(job), 0) / DAY_MS;
  const days = sum((job) => heldMs(job, next) * nodesOf(job));
  const isDeleted = ({ deletedAt }: SimJob) => deletedAt !== undefined;
  const unreported = ({ history }: SimJob) => Math.max(UNSEEN_MS, next - (history.at(-1)?.at ?? next));
  const unknown = sum((job) => (isDeleted(job) ? unreported(job) : ROUNDED_MS) * nodesOf(job));
  const least = jobs.some(isDeleted) ? 0 : days * (1 - SHARE_TOLERANCE) - unknown;
  return [least, days * (1 + SHARE_TOLERANCE) + unknown];
}
