import { HEARTBEAT_MS } from '../../../lib/core/lifecycle/accounting/spend';
import type { SimMs } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import type { S3Object } from '../services/s3-object';
import { type SimJob, shapeCount } from './job';
import { StartLog } from './steps/start-log';

/** The newest heartbeat of a job whose driver runs, as the driver of the first host writes it; undefined before the first one. */
export function heartbeatOf(job: SimJob, now: SimMs): S3Object | undefined {
  const { truth, driverSince } = job;
  if (!truth?.heartbeat || driverSince === undefined) return undefined;
  const until = Math.min(now, job.silentSince ?? now);
  if (until < driverSince) return undefined;
  const at = driverSince + Math.floor((until - driverSince) / HEARTBEAT_MS) * HEARTBEAT_MS;
  const facts = () => {
    const all = factsOf(job, at, driverSince);
    if (job.missingFields.length === 0) return all;
    return Object.fromEntries(Object.entries(all).filter(([field]) => !job.missingFields.includes(field)));
  };
  const { key } = truth.heartbeat;
  return job.heartbeatContent ? hostileHeartbeat(key, job.heartbeatContent, job, at) : { key, bytes: 300, at, facts };
}

/** A heartbeat that the code of the run has written in place of the driver. */
function hostileHeartbeat(
  key: string,
  kind: NonNullable<SimJob['heartbeatContent']>,
  job: SimJob,
  at: SimMs,
): S3Object {
  if (kind === 'large') return { key, bytes: 600_000_000, at, body: () => '{' };
  if (kind === 'garbled') return { key, bytes: 60, at, body: () => '{"attempt":1,"step":\u001b[2J' };
  const minute = Math.floor(at / HEARTBEAT_MS);
  const hosts = Array.from({ length: 40 }, (_, i) => ({ host: `algo-${minute}-${i}`, reason: 'r'.repeat(500) }));
  const facts = () => ({
    ...factsOf(job, at, at),
    phase: `p${minute}`.repeat(1000),
    lossAlert: `\u001b[31m${minute}`.repeat(2000),
    slowHost: { host: `h${minute}`, what: 'step', ratio: 1e9 },
    stepsPerHour: 1e300,
    usualStepsPerHour: -1,
    restarts: -5,
    uptimeSeconds: 1e18,
    setAside: hosts,
    starts: [{ number: 1e9, firstStep: 1e18, firstStepAt: 1e18, step: -4, stepAt: 1e18, endedAt: -1e18 }],
  });
  return { key, bytes: 60_000, at, facts };
}

function factsOf(job: SimJob, at: SimMs, driverSince: SimMs): Record<string, unknown> {
  const { truth, stepping } = job;
  const step = truth?.showsSteps ? (stepping?.seenAt(at) ?? null) : null;
  const perHour = truth ? Math.round(360_000 / job.secondsPerStep) / 100 : null;
  const isStepping = step !== null && stepping?.isGoing === true;
  return {
    at: Math.floor((EPOCH_MS + at) / 1000),
    uptimeSeconds: (at - driverSince) / 1000,
    attempt: job.attempt,
    step,
    phase: step === null && truth?.showsSteps ? 'start' : '',
    hosts: shapeCount(job.chosen ?? []),
    firstStep: step === null ? null : (stepping?.firstStep ?? null),
    loss: null,
    lossAlert: null,
    slowHost: null,
    stepsPerHour: isStepping ? perHour : null,
    usualStepsPerHour: isStepping ? perHour : null,
    restarts: job.restartedAt.length,
    starts: startsOf(job, at),
    handOver: job.isLeaveRequested,
    setAside: [...job.setAside],
    sparesLeft: truth && truth.spec.compute.spareInstances > 0 ? job.sparesLeft : null,
  };
}

/** A script whose steps cannot be observed has starts without steps. */
function startsOf({ truth, stepping, secondsPerStep }: SimJob, at: SimMs) {
  const { totalSteps = 0 } = (truth?.showsSteps && truth.behaviour) || {};
  return (truth?.showsSteps && stepping ? stepping.starts : new StartLog()).facts(at, secondsPerStep, totalSteps);
}
