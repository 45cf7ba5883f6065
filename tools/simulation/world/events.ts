import { onEvent } from '../../../lib/control/reconcile/reconcile';
import { ASYNC_MAX_AGE_SECONDS, ASYNC_RETRIES, TICK, TICK_SECONDS } from '../../../lib/core/contracts/launcher';
import type { SimMs, VirtualClock } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { Random } from '../core/random';
import type { SimJob } from '../job/job';
import type { Fault } from '../scenario/schema';
import type { Message, SimQueue } from '../services/queue';
import type { Functions } from './functions';

/**
 * Delays before Lambda retries an asynchronous invocation:
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
 */
const RETRY_MS = [60_000, 120_000];

/** One tick of the schedule and the messages that it sent. */
interface Tick {
  at: SimMs;
  open: number;
  hasSent: boolean;
}

/** What the event sources need from the world. */
export interface EventHooks {
  readonly environment: string;
  readonly faults: readonly Fault[];
  queue(): SimQueue;
  /** Whether the stack has been deleted. */
  isDeleted(): boolean;
}

/** The triggers of reconcile: the schedule, state changes of jobs on the event bus, and the messages of the queue. */
export class EventSources {
  /** Number of events for which all invocations failed. */
  deadLetters = 0;
  /** Milliseconds from each tick to the end of its last message. */
  readonly tickMs: number[] = [];
  private readonly tickOf = new Map<Invocation, Tick>();
  private readonly tickOfMessage = new Map<Message, Tick>();
  private readonly busFaults: Fault[];

  constructor(
    private readonly clock: VirtualClock,
    private readonly random: Random,
    private readonly functions: Functions,
    private readonly hooks: EventHooks,
  ) {
    this.busFaults = hooks.faults.filter(({ events }) => events !== undefined);
  }

  /** Schedules ticks until the end of the scenario, from an hour before the first run: until then a tick finds nothing to do. */
  startSchedule(firstRun: SimMs): void {
    const idleTicks = Math.max(0, Math.floor((firstRun - 3_600_000) / (TICK_SECONDS * 1000)));
    const tick = () => {
      if (this.hooks.isDeleted()) return;
      this.tick();
      this.clock.after(TICK_SECONDS * 1000, tick);
    };
    this.clock.after((idleTicks + 1) * TICK_SECONDS * 1000, tick);
  }

  /** A message of the queue: one invocation, after which the message is deleted unless the function reports it as failed. */
  deliver(message: Message): void {
    if (this.hooks.isDeleted()) return;
    this.functions.reconcile.invoke(
      (deps) => onEvent(deps, eventOf(message)),
      (ending, invocation) => {
        message.throttledCalls += invocation.throttledCalls;
        const answer =
          ending.kind === 'answer' ? (ending.value as { batchItemFailures?: unknown[] } | undefined) : undefined;
        if (ending.kind === 'answer' && (answer?.batchItemFailures ?? []).length === 0)
          this.hooks.queue().done(message);
      },
    );
  }

  messageSent(message: Message, invocation: Invocation | undefined): void {
    const tick = invocation && this.tickOf.get(invocation);
    if (!tick) return;
    tick.open += 1;
    this.tickOfMessage.set(message, tick);
  }

  messageOver(message: Message): void {
    const tick = this.tickOfMessage.get(message);
    if (!tick) return;
    this.tickOfMessage.delete(message);
    tick.open -= 1;
    this.closeTick(tick);
  }

  /** A job's state changed: an event on the bus, if the environment's rule matches the job's name. */
  jobChanged(job: SimJob): void {
    if (this.hooks.isDeleted() || !job.name.startsWith(`${this.hooks.environment}-`)) return;
    const now = this.clock.now;
    const kind = job.kind === 'training' ? 'Training' : 'Processing';
    const event = {
      source: 'aws.sagemaker',
      'detail-type': `SageMaker ${kind} Job State Change`,
      detail: {
        [`${kind}JobName`]: job.name,
        [`${kind}JobStatus`]: job.status,
        ...(job.kind === 'training' && { SecondaryStatus: job.secondaryStatus }),
      },
    };
    const fault = this.busFaults.find(
      ({ at = 0, to = Number.POSITIVE_INFINITY }) => now >= at * 1000 && now < to * 1000,
    );
    if (fault?.events === 'lost') return;
    const delay = 500 + 1500 * this.random.next();
    const late = (fault?.minutes ?? 5) * 60_000;
    const times = fault ? [late, 2 * late] : [delay];
    for (const ms of times) this.clock.after(ms, () => this.invokeAsync(event));
  }

  private tick(): void {
    const tick: Tick = { at: this.clock.now, open: 0, hasSent: false };
    this.invokeAsync(TICK, tick);
  }

  private closeTick(tick: Tick): void {
    if (tick.hasSent && tick.open === 0) this.tickMs.push(this.clock.now - tick.at);
  }

  /** Lambda's asynchronous event queue: retries a failed invocation twice, then discards the event. */
  private invokeAsync(event: unknown, tick?: Tick, tries = 0, since = this.clock.now): void {
    const invocation = this.functions.reconcile.invoke(
      (deps) => onEvent(deps, event),
      (ending, ended) => {
        this.tickOf.delete(ended);
        if (ending.kind === 'answer') {
          if (tick) {
            tick.hasSent = true;
            this.closeTick(tick);
          }
          return;
        }
        const wait = RETRY_MS[tries] ?? 0;
        const isTooOld = this.clock.now + wait - since > ASYNC_MAX_AGE_SECONDS * 1000;
        if (tries >= ASYNC_RETRIES || isTooOld) this.deadLetters += 1;
        else this.clock.after(wait, () => this.invokeAsync(event, tick, tries + 1, since));
      },
    );
    if (tick) this.tickOf.set(invocation, tick);
  }
}

/** What Lambda passes to the function for a message. */
const eventOf = ({ id, body, receipt }: Message) => ({
  Records: [{ messageId: id, body, receiptHandle: receipt, eventSource: 'aws:sqs' }],
});
