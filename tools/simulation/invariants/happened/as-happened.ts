import { findPrice } from '../../../../lib/core/catalog/prices/prices';
import { trainedMs } from '../../../../lib/core/lifecycle/accounting/pauses';
import { HEARTBEAT_MS } from '../../../../lib/core/lifecycle/accounting/spend';
import { ON_DEMAND, parseCapacityOptionId } from '../../../../lib/core/lifecycle/capacity-options';
import type { Attempt, CapacityOption, FailureClass } from '../../../../lib/core/lifecycle/record';
import { EPOCH_MS } from '../../core/epoch';
import { heldMs, type SimJob } from '../../job/job';
import { attemptsOf, timelineOf } from '../../timeline';
import type { SimRun } from '../../world/sim-run';
import { Invariant, isReplaced, ROUNDED_MS, SHARE_TOLERANCE } from '../invariant';
import { trueClass } from '../true-class';
import { countedOtherwise } from './counted';
import { earlierFailures } from './earlier-failures';

/** Without this field, a text is no heartbeat of a driver. */
const REQUIRED_FIELD = 'attempt';
/** An unreadable heartbeat this shortly before the end may have been the last. */
const UNREAD_MS = 600_000;

/** The table's data about ended attempts, and about the capacity options of a run, match what the jobs did and what they cost. */
export class AsHappened extends Invariant {
  readonly name = 'as-happened';

  override onEnd(): void {
    for (const run of this.scene.world.runs) {
      const attempts = attemptsOf(this.scene.world, run);
      const differences = [
        ...(run.record?.policy.capacityOptions ?? []).flatMap((option) => this.ofOption(run, option)),
        ...attempts.flatMap((attempt) => this.ofAttempt(run, attempt)),
        ...run.jobs.filter((job) => isReplaced(run, job)).flatMap((job) => this.ofReplaced(run, job)),
        ...countedOtherwise(run, attempts, timelineOf(this.scene.world, run), this.now),
        ...earlierFailures(run),
      ];
      for (const what of differences) this.break(`run ${run.id}: ${what}`);
    }
  }

  private ofAttempt(run: SimRun, attempt: Attempt): string[] {
    const job = run.jobs.findLast(({ name }) => name === attempt.jobName);
    if (!job || attempt.phase !== 'ended' || attempt.failureClass === 'collision') return [];
    const requested = run.record?.policy.capacityOptions.find(({ id }) => id === attempt.capacityOptionId);
    const whole = job.deletedAt === undefined;
    const found = [
      ...(requested ? ofRequest(requested, job) : [`capacity option ${attempt.capacityOptionId} is none of its own`]),
      ...ofStart(attempt, job),
      ...(whole
        ? [...ofEnd(attempt, job), ...this.ofMoney(attempt, job), ...this.ofSteps(run, attempt, job)]
        : this.ofDeleted(run, attempt, job)),
    ];
    return found.map((what) => `${attempt.jobName}: ${what}`);
  }

  private ofMoney(attempt: Attempt, job: SimJob): string[] {
    const { prices } = this.scene.world;
    const usd = prices.isKnown(job) ? prices.jobUsd(job, this.now) : null;
    const held = heldMs(job, this.now);
    // In a job of a minute, the rounded seconds are more than the share.
    const ofRounding = held > 0 ? ROUNDED_MS / held : 0;
    const isRight =
      attempt.costUsd === null || usd === null
        ? attempt.costUsd === usd
        : Math.abs(attempt.costUsd - usd) <= (SHARE_TOLERANCE + ofRounding) * usd + 0.02;
    const booked = trainedMs(attempt, attempt.endedAt ?? 0);
    return [
      ...differ('cost, USD', attempt.costUsd, usd, isRight),
      ...differ('pauses', attempt.pauses?.times ?? 0, pausesOf(job), (attempt.pauses?.times ?? 0) === pausesOf(job)),
      ...differ('ms with instances', booked, held, Math.abs(held - booked) <= ROUNDED_MS),
    ];
  }

  /** First and last step of the attempt itself, as far as they are visible: in the heartbeat, and the last one also in a metric. */
  private ofSteps(run: SimRun, { firstStep, lastStep, progress }: Attempt, job: SimJob): string[] {
    const { truth, stepping, restartedAt, kind } = job;
    const restarts = restartedAt.length;
    if (!truth?.showsSteps || kind === 'processing') return [];
    const [first = null, last = null] = [stepping?.firstStep, stepping?.at];
    const isRead = truth.heartbeat !== undefined && !this.isUnread(run, job);
    const { vitals } = progress ?? {};
    const isGarbled = this.garbledSince(run, job) !== undefined;
    // Steps of the last minute are not in any heartbeat.
    const isUnreported = firstStep === null && (last ?? 0) - (first ?? 0) <= stepsInHeartbeat(job);
    // The service started the container again, and no heartbeat of the new one was read: the steps before it are the last ones known.
    const isEarlier = pausesOf(job) > 0 && !isRead && (lastStep ?? -1) > (last ?? -1);
    return [
      ...differ('lastStep', lastStep, last, lastStep === last || isEarlier),
      ...(isRead ? differ('firstStep', firstStep, first, firstStep === first || isUnreported) : []),
      ...(isRead && vitals && !isGarbled
        ? differ('restarts in place', vitals.restarts, restarts, vitals.restarts === restarts)
        : []),
    ];
  }

  /**
   * No driver wrote the heartbeats, or a call to S3 failed or was delayed while the job lived or its end was processed (which is before the next job), so a heartbeat may not
   * have been read.
   */
  private isUnread(run: SimRun, job: SimJob): boolean {
    const { createdAt } = job;
    if (job.missingFields.includes(REQUIRED_FIELD)) return true;
    const next = run.jobs[run.jobs.indexOf(job) + 1];
    const over = (next?.createdAt ?? run.overAt ?? this.now) + UNREAD_MS;
    return this.wasNeverRead(run, job) || this.callFaults('s3', createdAt, over).length > 0;
  }

  /** Its own code wrote something else in place of the heartbeat from its first steps on, or from before what was read could be stored. */
  private wasNeverRead(run: SimRun, job: SimJob): boolean {
    const { createdAt, truth } = job;
    const since = this.garbledSince(run, job) ?? Number.POSITIVE_INFINITY;
    const isEarly = since < createdAt + (truth?.behaviour.startMs ?? 0) + UNREAD_MS;
    const isUnstored =
      this.isPoisoned(run, since - createdAt, since) || this.callFaults('dynamodb', createdAt, since).length > 0;
    return isEarly || (since < this.now && isUnstored);
  }

  /** Since when its own code wrote something else in place of the heartbeat, until its end; undefined when its last one was the driver's. */
  private garbledSince(run: SimRun, job: SimJob): number | undefined {
    const endedAt = job.history.at(-1)?.at ?? this.now;
    const found = this.heartbeatFaults(run, job).find(
      ({ beats, to = Number.POSITIVE_INFINITY }) => beats !== 'wild' && to * 1000 > endedAt - HEARTBEAT_MS,
    );
    const at = found && (found.at ?? 0) * 1000;
    return at !== undefined && at < endedAt ? at : undefined;
  }

  /**
   * The only remaining sources are its last heartbeat, if that is one, and its commits; the table cannot know more steps than there were.
   */
  private ofDeleted(run: SimRun, attempt: Attempt, job: SimJob): string[] {
    const { truth, stepping, missingFields } = job;
    const { at: made = -1 } = stepping ?? {};
    const { lastStep } = attempt;
    if ((lastStep ?? -1) > made) return differ('lastStep', lastStep, made, false);
    if (this.isUnread(run, job)) return [];
    const saved = truth?.newestStepOf(attempt.number) ?? -1;
    if (this.garbledSince(run, job) !== undefined)
      return differ('lastStep', lastStep, `${saved} or later`, (lastStep ?? -1) >= saved);
    const isReported =
      truth?.showsSteps && truth.heartbeat && missingFields.length === 0 && made > (stepping?.firstStep ?? 0);
    return isReported
      ? differ('lastStep', lastStep, made, lastStep !== null && made - lastStep <= stepsInHeartbeat(job))
      : [];
  }

  /** A name may be used again only if nothing in S3 shows that the deleted job ran. */
  private ofReplaced(run: SimRun, job: SimJob): string[] {
    const hasHeartbeat =
      job.truth?.heartbeat && job.history.some(({ secondaryStatus }) => secondaryStatus === 'Training');
    return hasHeartbeat && !this.isUnread(run, job)
      ? [`${job.name} had a heartbeat and was deleted, and its name was used again`]
      : [];
  }

  /** The capacity option as control derived it must follow from the run file and the price list alone. */
  private ofOption({ truth }: SimRun, option: CapacityOption): string[] {
    if (!truth) return [];
    const { kind, compute } = truth.spec;
    const isOnDemand = compute.capacity === 'on-demand' || parseCapacityOptionId(option.id).kind === ON_DEMAND;
    const usage = kind === 'processing' ? kind : isOnDemand ? 'training' : compute.capacity;
    const found = differ(`usage of capacity option ${option.id}`, option.usage, usage, option.usage === usage);
    if (usage === 'training-plan') return found;
    const { region, prices } = this.scene.world.scenario.environment;
    const list = option.instances.map(({ instanceType, instanceCount }) => {
      const price = findPrice(instanceType, region, prices)?.usdPerHour;
      return price === undefined ? null : price * instanceCount;
    });
    const usd = list.includes(null) ? null : list.reduce<number>((sum, one) => sum + (one ?? 0), 0);
    const isRight = usd === option.usdPerHour || Math.abs((usd ?? 0) - (option.usdPerHour ?? -1)) < 0.01;
    return [...found, ...differ(`USD an hour of capacity option ${option.id}`, option.usdPerHour, usd, isRight)];
  }
}

/** Number of periods without instances after it had had them. */
const pausesOf = ({ history }: SimJob): number =>
  history.filter(({ secondaryStatus }) => secondaryStatus === 'Interrupted').length;

/** Maximum number of steps between two heartbeats. */
const stepsInHeartbeat = ({ secondsPerStep }: SimJob): number => Math.ceil(HEARTBEAT_MS / 1000 / secondsPerStep) + 1;

/** Differences between a job's create request and its capacity option. */
function ofRequest(option: CapacityOption, job: SimJob): string[] {
  const [first = []] = job.wanted;
  const types = option.instances.map(({ instanceType }) => instanceType);
  const isSame =
    first.every(({ instanceType }) => types.includes(instanceType)) &&
    first.reduce((sum, one) => sum + one.count, 0) ===
      option.instances.reduce((sum, one) => sum + one.instanceCount, 0);
  return [
    ...differ('instances of its capacity option', JSON.stringify(option.instances), JSON.stringify(first), isSame),
    ...differ(
      'usage of its capacity option',
      option.usage,
      job.spot ? 'spot' : 'another',
      job.spot === (option.usage === 'spot'),
    ),
    ...differ(
      'kind of its capacity option',
      option.usage,
      job.kind,
      (job.kind === 'processing') === (option.usage === 'processing'),
    ),
  ];
}

function ofStart(attempt: Attempt, { truth, resumeUri }: SimJob): string[] {
  if (truth?.resumeFrom !== 's3') return [];
  const step = resumeUri === '' ? null : (truth.stepOf(resumeUri) ?? null);
  const written = attempt.resumeFrom?.step ?? null;
  return differ('step that it began at', written, step, written === step);
}

/** Differences between the recorded end of an attempt and the actual one: the world knows what happened. */
function ofEnd(attempt: Attempt, job: SimJob): string[] {
  const failure = classOf(attempt, job);
  return [
    ...differ('status', attempt.status, job.status, attempt.status === job.status),
    ...differ(
      'secondaryStatus',
      attempt.secondaryStatus,
      job.secondaryStatus,
      attempt.secondaryStatus === job.secondaryStatus,
    ),
    ...differ('failureClass', attempt.failureClass, failure, attempt.failureClass === failure),
    ...atTime('trainingStartedAt', attempt.trainingStartedAt, job.startedAt),
    ...atTime('endedAt', attempt.endedAt, job.history.at(-1)?.at),
  ];
}

/**
 * The expected class. An attempt that Slipway itself stopped is a hand-over, whatever the reason; a hung attempt may first be stopped for
 * another reason, and one that was stopped for a hang counts as hung, whatever its hosts did meanwhile.
 */
function classOf(attempt: Attempt, job: SimJob): FailureClass | 'completed' | undefined {
  if (job.status === 'Completed') return 'completed';
  if (job.status === 'Failed' && job.isHung && attempt.stop?.why === 'hang') return 'hang';
  const failure = trueClass(job);
  const isRequested = attempt.stop !== undefined && attempt.stop.why !== 'hang';
  return failure === undefined || (failure === 'hang' && job.status === 'Stopped' && isRequested)
    ? attempt.stop && 'planned'
    : failure;
}

const atTime = (what: string, written: number | undefined, at: number | undefined): string[] => {
  const wanted = at === undefined ? undefined : EPOCH_MS + at;
  const isNear = written !== undefined && wanted !== undefined && Math.abs(written - wanted) <= ROUNDED_MS;
  return differ(what, written, wanted, isNear || written === wanted);
};

const differ = (what: string, written: unknown, truth: unknown, isRight: boolean): string[] =>
  isRight ? [] : [`${what} is written as ${written ?? 'none'} and was ${truth ?? 'none'}`];
