import { TICK_SECONDS } from '../../../lib/core/contracts/launcher';
import type { Invocation } from '../core/invocation';
import { isLive, type SimJob } from '../job/job';
import type { StackCall } from '../scenario/load';
import type { Item } from '../services/expression';
import type { SimRun } from '../world/sim-run';
import { Invariant, span } from './invariant';

const TWO_TICKS_MS = 2 * TICK_SECONDS * 1000;
/** Maximum time of one message of one run, including the pauses after an ambiguous create. */
const SLACK_MS = 60_000;

/** Services that control needs for every action. */
export const CONTROL_NEEDS = ['dynamodb', 'sqs', 'ssm', 's3', 'servicequotas'];
/** A release also needs SageMaker. */
export const RELEASE_NEEDS = [...CONTROL_NEEDS, 'sagemaker'];

/** The run was stopped and resumed at about the same time: the later call wins although both were granted. */
export const requestedLately = ({ requests }: SimRun, now: number): boolean =>
  requests.some(({ at }) => now - at < TWO_TICKS_MS);

/** A run never has more than one live job. */
export class OneLiveJob extends Invariant {
  readonly name = 'one-live-job';

  override onCreate(run: SimRun | undefined, job: SimJob): void {
    const others = (run?.jobs ?? []).filter((other) => other !== job && isLive(other));
    if (others.length === 0) return;
    this.break(`${job.name} was created while ${others.map(({ name }) => name).join(', ')} was live`);
  }
}

/** After a stop was accepted no new job of the run starts, and the live one ends within two ticks of the service answering. */
export class StopWins extends Invariant {
  readonly name = 'stop-wins';
  private readonly requested = new Map<SimRun, number>();

  override onRunWritten(run: SimRun, before: Item | undefined, item: Item): void {
    if (item.desired?.S === before?.desired?.S) return;
    if (item.desired?.S === 'stop') this.requested.set(run, this.now);
    else this.requested.delete(run);
  }

  /** When control grants a stop, it is already in the table. */
  override onGranted(run: SimRun, action: 'stop' | 'resume'): void {
    const isKept = !run.wantsToRun || run.isOver || requestedLately(run, this.now);
    if (action === 'stop' && !isKept) this.break(`the stop of run ${run.id} was granted and not kept`);
  }

  /** A team may stop its own runs at any time. */
  override onDenied(run: SimRun, action: 'stop' | 'resume', reason: string): void {
    if (action === 'stop' && !this.isPoisoned(run)) this.break(`the stop of run ${run.id} was refused: ${reason}`);
  }

  /** People repeat a stop; if every service answers, one of the calls is accepted. */
  override onGivenUp(run: SimRun, action: string): void {
    const isCalm = this.scene.troubles.calmSince(CONTROL_NEEDS) < this.now;
    if (action === 'stop' && isCalm) this.break(`every call that stops run ${run.id} failed`);
  }

  /** A create whose decision was written before the stop may still reach the service. */
  override onCreate(run: SimRun | undefined, job: SimJob, by: Invocation): void {
    const requestedAt = run && this.requested.get(run);
    if (requestedAt === undefined) return;
    const decidedAt = by.wroteRunAt?.get(run?.id ?? '');
    if (decidedAt !== undefined && decidedAt <= requestedAt) return;
    this.break(`${job.name} was created ${span(this.now - requestedAt)} after the stop was accepted`);
  }

  override onCheck(): void {
    for (const [run, requestedAt] of this.requested) {
      if (this.isPoisoned(run, TWO_TICKS_MS + SLACK_MS)) continue;
      const live = run.jobs.find((job) => isLive(job) && job.stopAt === undefined && job.status === 'InProgress');
      const calm = this.scene.troubles.calmSince(['sagemaker:StopTrainingJob', 'dynamodb', 'sqs']);
      if (!live || this.now <= Math.max(requestedAt + TWO_TICKS_MS + SLACK_MS, calm, live.createdAt + TWO_TICKS_MS))
        continue;
      this.break(`${live.name} was not stopped ${span(this.now - requestedAt)} after the stop was accepted`);
    }
  }
}

/** The environment has no live job that does not belong to a run. */
export class NoOrphan extends Invariant {
  readonly name = 'no-orphan';
  private readonly since = new Map<SimJob, number>();
  private isDeleted = false;

  override onCheck(): void {
    for (const job of this.scene.world.fleet.live()) {
      if (!job.truth || this.isOwned(job)) {
        this.since.delete(job);
        continue;
      }
      const since = this.since.get(job) ?? this.now;
      this.since.set(job, since);
      if (
        this.now - since <= TWO_TICKS_MS ||
        this.now <= this.scene.troubles.calmSince(['dynamodb', 'sqs', 'sagemaker'])
      )
        continue;
      const run = this.scene.world.runOf(job);
      this.break(`${job.name} is ${job.status}, and its run ${run?.id ?? ''} is ${run?.state ?? 'unknown'}`);
    }
  }

  /** A change of the stack must not affect live runs, and must not be rejected without any. */
  override onStackChange(what: StackCall, refusal: string | undefined): void {
    const { world, troubles } = this.scene;
    const isBlind = world.state.indexLagMs() > 0 || world.state.describeLagMs() > 0;
    if (isBlind || this.now <= troubles.calmSince(['dynamodb', 'sagemaker'])) return;
    const jobs = world.fleet.live().filter(({ truth }) => truth !== undefined);
    const runs = world.runs.filter(({ record, isOver }) => record && (!isOver || record.outbox.length > 0));
    const live = [...jobs.map(({ name }) => name), ...runs.map(({ id }) => `run ${id}`)];
    if (refusal === undefined && live.length > 0) this.break(`${what} was let through while ${live.join(', ')} lived`);
    const ended = Math.max(0, ...world.runs.map((run) => run.stateSince));
    const isQuiet = live.length === 0 && this.now - ended > TWO_TICKS_MS;
    if (refusal !== undefined && isQuiet) this.break(`${what} was refused while nothing lived: ${refusal}`);
    this.isDeleted ||= what === 'delete-stack' && refusal === undefined;
  }

  override onCreate(_run: SimRun | undefined, job: SimJob): void {
    if (this.isDeleted) this.break(`${job.name} was created after the stack was deleted`);
  }

  private isOwned(job: SimJob): boolean {
    const run = this.scene.world.runOf(job);
    const attempt = run?.record?.attempt;
    return run !== undefined && !run.isOver && attempt?.jobName === job.name && attempt.phase !== 'ended';
  }
}

/** The job may be asked to save and exit: its run is preemptible or elastic. */
const mayHandOver = ({ truth }: SimRun): boolean =>
  truth?.spec.preemptible === true || truth?.spec.compute.elastic !== undefined;

/** A job that makes steps is only stopped by a person, by the spend cap or by preemption. */
export class HealthyLeftAlone extends Invariant {
  readonly name = 'healthy-left-alone';

  override onStop(run: SimRun | undefined, job: SimJob, _by: Invocation): void {
    if (!run || !this.goesOn(job)) return;
    const wanted = run.requests.some(({ want, at }) => want === 'stop' && at >= job.createdAt - TWO_TICKS_MS);
    if (wanted || !run.wantsToRun) return;
    const why = run.record?.attempt?.stop;
    if (why?.why === 'spend' || (why?.why === 'hand-over' && mayHandOver(run))) return;
    this.break(`${job.name} was stopped while its steps went on: ${why?.text ?? 'no reason was written down'}`);
  }

  private goesOn(job: SimJob): boolean {
    if (job.isHung || !job.held) return false;
    if (job.stepping?.isGoing) return true;
    const startup = (job.truth?.spec.progress.startupMinutes ?? 30) * 60_000;
    return job.driverSince !== undefined && this.now - job.driverSince < startup && job.secondaryStatus === 'Training';
  }
}

/** A resume never starts before the newest complete commit. */
export class WorkKept extends Invariant {
  readonly name = 'work-kept';

  override onCreate(run: SimRun | undefined, job: SimJob): void {
    const { truth } = job;
    if (!run || !truth || truth.resumeFrom !== 's3' || run.jobs.length < 2) return;
    const from = job.resumeUri === '' ? truth.baseStep : (truth.stepOf(job.resumeUri) ?? Number.POSITIVE_INFINITY);
    const newest = truth.newestReadable?.step;
    if (newest === undefined || from >= newest) return;
    this.break(`${job.name} begins at step ${from}, and step ${newest} is committed`);
  }
}
