import type { SQSBatchResponse } from 'aws-lambda';
import type { z } from 'zod';
import { parseJson } from '../../core/config/formats/json';
import {
  jobEventSchema,
  queueEventSchema,
  type RunMessage,
  runMessageSchema,
  tickSchema,
} from '../../core/contracts/launcher';
import { isDueForObservation, TICK_MS } from '../../core/lifecycle/health/observation-schedule';
import type { RunRecord } from '../../core/lifecycle/record';
import { describeError } from '../shared/errors';
import { MAX_IN_BATCH, retryLater, sendMessage, sendMessages } from '../shared/queue';
import { UnreadableItem } from '../shared/stored';
import { admitRuns } from './admit-runs';
import type { ReconcileDeps } from './deps';
import { reconcileRun } from './reconcile-run';
import { teamStates, writeTeamMetrics, writeTeamPages } from './team-page';
import { reportUnreadable } from './unreadable-items';

/**
 * The only function that creates and stops jobs. People have no permission to invoke it.
 *
 * It receives three kinds of events: the schedule (every 5 minutes, authoritative), state changes of jobs (only a hint), and messages of
 * the FIFO queue, with one message group per run. The first two only send messages to the queue; the messages do the work, so that a run
 * that fails is retried alone and never delays another. Every event may arrive twice, late, out of order or never.
 */
export async function onEvent(deps: ReconcileDeps, event: unknown): Promise<SQSBatchResponse | undefined> {
  const queue = queueEventSchema.safeParse(event);
  if (queue.success) return onMessages(deps, queue.data.Records);
  if (tickSchema.safeParse(event).success) return onTick(deps);
  const change = jobEventSchema.safeParse(event);
  if (change.success) return onJobEvent(deps, change.data);
  throw new Error(
    'the event must be the tick, a job state change or messages of the run queue; check what invokes this function',
  );
}

/** One message per active run that is due, and one for the queue of runs. */
async function onTick(deps: ReconcileDeps): Promise<undefined> {
  // Two simultaneous ticks may be deduplicated, but never with a later one, which may observe something new.
  const tickAt = deps.now().getTime();
  const once = `tick/${tickAt}`;
  const all = await deps.store.active();
  const { unreadable } = deps.store;
  const due = all.filter((run) => isDueForObservation(run, tickAt));
  deps.log('info', 'tick', { active: all.length, observed: due.length });
  await sendMessage(deps.sqs, deps.queueUrl, { kind: 'admit' }, once);
  await wake(deps, due, tickAt);
  await reportUnreadable(deps, 'RUN', unreadable);
  const stateOf = teamStates(deps, all);
  await writeTeamMetrics(deps, all, stateOf);
  await writeTeamPages(deps, rotated(Object.keys(deps.shares), deps.now().getTime()), { active: all, stateOf });
}

/**
 * Pause after each batch of runs that a tick wakes: 1,000 runs are spread over half a minute, to limit the rate of calls to other services.
 */
const SPREAD_MS = 250;
/** Time that a tick keeps for its notices, metrics and pages. */
const TICK_RESERVE_MS = 15_000;

/** Wakes runs while the invocation has time, which suffices for about 3,500. */
async function wake(deps: ReconcileDeps, runs: readonly RunRecord[], tickAt: number): Promise<void> {
  const left = () => (deps.remainingMs?.() ?? Number.POSITIVE_INFINITY) - TICK_RESERVE_MS;
  const pausesMs = (runs.length / MAX_IN_BATCH) * SPREAD_MS;
  const inTurn = 2 * pausesMs < left() ? runs : rotated(runs, deps.now().getTime());
  for (let from = 0; from < runs.length; from += MAX_IN_BATCH) {
    if (from > 0) await deps.sleep(SPREAD_MS);
    if (left() < 0) return deps.log('warn', 'a tick had no time to wake every run', { woken: from, due: runs.length });
    const some = inTurn
      .slice(from, from + MAX_IN_BATCH)
      .map(({ runId }): RunMessage => ({ kind: 'run', runId, tickAt }));
    await sendMessages(deps.sqs, deps.queueUrl, some, `tick/${tickAt}`);
  }
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/**
 * Begins each tick at another run or team, so that none is left out of every tick when there is no time for all. Steps of the golden ratio
 * spread the beginnings evenly, also over every second tick, the only ones in which a steady run is due.
 */
function rotated<T>(all: readonly T[], now: number): T[] {
  const first = Math.floor(((Math.floor(now / TICK_MS) * GOLDEN_RATIO) % 1) * all.length);
  return [...all.slice(first), ...all.slice(0, first)];
}

async function onJobEvent(deps: ReconcileDeps, event: { detail: Record<string, unknown> }): Promise<undefined> {
  const { TrainingJobName, ProcessingJobName, TrainingJobStatus, ProcessingJobStatus, SecondaryStatus } = event.detail;
  const name = String(TrainingJobName ?? ProcessingJobName ?? '');
  const runId = runIdOf(deps.environment, name);
  if (!runId) return;
  const status = `${TrainingJobStatus ?? ProcessingJobStatus}/${SecondaryStatus ?? ''}`;
  await sendMessage(deps.sqs, deps.queueUrl, { kind: 'run', runId }, `${name}/${status}`);
}

/** The run that a job name belongs to; undefined for a job that is not of this environment. */
export function runIdOf(environment: string, jobName: string): string | undefined {
  const prefix = `${environment}-`;
  if (!jobName.startsWith(prefix)) return undefined;
  return /^(.+)-a\d{3,}$/.exec(jobName.slice(prefix.length))?.[1];
}

type QueueRecord = z.output<typeof queueEventSchema>['Records'][number];

/**
 * There is one message (`RUN_QUEUE_BATCH_SIZE`).
 * @returns failed messages, which Lambda delivers again; it deletes the others
 */
async function onMessages(deps: ReconcileDeps, records: readonly QueueRecord[]): Promise<SQSBatchResponse> {
  const failed: SQSBatchResponse['batchItemFailures'] = [];
  for (const record of records) {
    const message = parseMessage(deps, record);
    if (message && !(await handled(deps, message, record.receiptHandle)))
      failed.push({ itemIdentifier: record.messageId });
  }
  return { batchItemFailures: failed };
}

/** A failed message is delivered again after this long. */
const AGAIN_SECONDS = 20;

async function handled(deps: ReconcileDeps, message: RunMessage, receiptHandle?: string): Promise<boolean> {
  try {
    if (message.kind === 'admit') await admitRuns(deps, message.runId);
    else return await handledRun({ ...deps, tickAt: message.tickAt }, message.runId, receiptHandle);
    return true;
  } catch (error) {
    // The next tick reports it; the same message again would fail again.
    if (error instanceof UnreadableItem) {
      deps.log('error', 'an item of the run table was left out', { error: error.message });
      return true;
    }
    deps.log('error', 'a message failed and will come again', { ...message, error: describeError(error) });
    if (receiptHandle) await again(deps, receiptHandle, AGAIN_SECONDS);
    return false;
  }
}

/**
 * A run whose create call has its place within the next minutes gets its message again at that time, rather than at the next tick.
 * @returns false when the message must come again
 */
async function handledRun(deps: ReconcileDeps, runId: string, receiptHandle?: string): Promise<boolean> {
  const waitMs = await reconcileRun(deps, runId);
  if (waitMs === undefined || !receiptHandle) return true;
  if (waitMs > AT_ONCE_MS) {
    await again(deps, receiptHandle, Math.floor(waitMs / 1000));
    return false;
  }
  // The queue counts whole seconds; the calls of a burst are closer to each other.
  await deps.sleep(waitMs);
  return (await reconcileRun(deps, runId)) === undefined;
}

/** Shorter waits are slept. */
const AT_ONCE_MS = 2000;

/** The queue's own visibility timeout is minutes; if this call fails, the message just comes later. */
async function again(deps: ReconcileDeps, receiptHandle: string, seconds: number): Promise<void> {
  try {
    await retryLater(deps.sqs, deps.queueUrl, receiptHandle, seconds);
  } catch (error) {
    deps.log('warn', 'a failed message waits for the timeout of the queue', { error: describeError(error) });
  }
}

/** An unreadable message is logged once and dropped, because repeating it would block its group indefinitely. */
function parseMessage(deps: ReconcileDeps, { body, messageId }: QueueRecord): RunMessage | undefined {
  const parsed = runMessageSchema.safeParse(parseJson(body));
  if (parsed.success) return parsed.data;
  deps.log('error', 'a message that cannot be read was dropped', { messageId, body: body.slice(0, 200) });
  return undefined;
}
