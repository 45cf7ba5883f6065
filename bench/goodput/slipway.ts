import { restartsPerHour } from '../../lib/core/job/job-file';
import type { Action } from '../../lib/core/lifecycle/action';
import { decide } from '../../lib/core/lifecycle/decide';
import { admitRun, askResume } from '../../lib/core/lifecycle/intent';
import type { Observed } from '../../lib/core/lifecycle/observed';
import type { PresentJob } from '../../lib/core/lifecycle/record';
import { type Attempt, isOver, type RunRecord } from '../../lib/core/lifecycle/record';
import { boundedSaveSeconds, endedShare, optimalSaveSeconds } from '../../lib/core/planner/run/failures';
import type { Constants } from './constants';
import type { Failure, FailureKind } from './failures';
import { CAUSES, type Cause, type Log, type RunResult } from './result';
import { savesOf } from './saves';
import { startedRecord } from './started-record';
import { type Source, Training } from './training';

const EPOCH = Date.UTC(2026, 0, 1);
const TICK_SECONDS = 300;
/** The driver writes a heartbeat once a minute. */
const HEARTBEAT_SECONDS = 60;
/** The service's own time to end a job that was told to stop. */
const STOP_SECONDS = 120;

/** What happens to the job of the current attempt, and when. */
interface Job {
  name: string;
  attempt: number;
  startsAt: number;
  stepsAt: number;
  leavesAt: number;
  /** Hosts of the job that can still take a broken one's place. */
  sparesLeft: number;
  /** When the restarts in place of the last hour were. */
  restartedAt: number[];
  /** Position when steps last began: the driver restarts in place only after a step beyond it. */
  beganAt: number;
  /** Steps stand still since; undefined = they do not. `source`: what a restart in place continues from, if there can be one. */
  stuck?: { since: number; source?: Source };
  /** How and when the job ends, once that is certain. */
  ending?: { at: number; status: 'Failed' | 'Stopped'; reason: string };
}

/**
 * One run under Slipway on a virtual clock. The control plane is the real `decide`, called at every tick and job event; what it
 * observes and what its actions do is simulated here: the driver's restart in place, its watchdogs, the trainer's saves.
 */
export class SlipwaySimulation {
  private readonly training: Training;
  private readonly horizon: number;
  private readonly uploadSeconds: number;
  private readonly saveCostSeconds: number;
  private record: RunRecord;
  private job: Job | undefined;
  private now = 0;
  private readonly failures: Failure[];
  private nextFailure = 0;
  /** Failures whose hosts belong to the next attempt. */
  private returning: Failure[] = [];
  private capacityWait = 0;
  private restarts = 0;
  private personNeeded = 0;
  private personAt: number | undefined;
  /** Failures, and those of them that ended the job. */
  private struck = 0;
  private ended = 0;
  private readonly booked = Object.fromEntries(CAUSES.map((cause) => [cause, 0])) as Record<Cause, number>;

  constructor(
    private readonly constants: Constants,
    failures: readonly Failure[],
    private readonly nodes: number,
    private readonly log: Log,
  ) {
    this.failures = [...failures];
    this.horizon = constants.days * 86_400;
    ({ costSeconds: this.saveCostSeconds, uploadSeconds: this.uploadSeconds } = savesOf(constants, nodes));
    this.training = new Training({
      blockedSeconds: this.saveCostSeconds,
      intervalSeconds: this.saveIntervalSeconds(),
      uploadSeconds: this.uploadSeconds,
      ...(constants.slipway.memory && { copies: constants.slipway.memory }),
    });
    this.record = startedRecord(constants, EPOCH);
  }

  run(): RunResult {
    this.reconcile();
    let tick = TICK_SECONDS;
    while (this.now < this.horizon) {
      const next = Math.min(this.nextEventAt(), tick, this.horizon);
      this.now = next;
      this.training.advance(next);
      this.happen();
      if (next >= tick) tick += TICK_SECONDS;
      this.reconcile();
    }
    return {
      productiveSeconds: this.training.position,
      seconds: this.seconds(),
      wallSeconds: this.horizon,
      restarts: this.restarts,
      personNeeded: this.personNeeded,
    };
  }

  private seconds(): Record<Cause, number> {
    const { blockedSeconds: save, copySeconds: copy, lostSeconds: lost, position } = this.training;
    const known = { ...this.booked, save, copy, lost, gap: 0 };
    const sum = Object.values(known).reduce((total, seconds) => total + seconds, position);
    return { ...known, gap: this.horizon - sum };
  }

  private book(cause: Cause, from: number, to: number): void {
    this.booked[cause] += Math.max(0, Math.min(to, this.horizon) - Math.min(from, this.horizon));
  }

  private nextEventAt(): number {
    const { job } = this;
    const failure = this.failures[this.nextFailure]?.at ?? Number.POSITIVE_INFINITY;
    const times = [
      failure,
      this.personAt,
      job?.ending?.at,
      job && this.isWaitingForSteps(job) ? job.stepsAt : undefined,
      job?.stuck && job.stuck.since + this.silenceSeconds,
    ];
    const leaves = job && !job.ending && !job.stuck ? job.leavesAt : undefined;
    return Math.min(
      ...[...times, leaves].filter((t) => t !== undefined && t > this.now).map(Number),
      Number.POSITIVE_INFINITY,
    );
  }

  private isWaitingForSteps(job: Job): boolean {
    return !job.ending && !job.stuck && !this.training.stepping;
  }

  /** Whatever is due now, to the job and to the people. */
  private happen(): void {
    const { job } = this;
    if (job && this.isWaitingForSteps(job) && this.now >= job.stepsAt) {
      this.training.begin(this.now);
      job.beganAt = this.training.position;
    }
    if (job && !job.ending && this.training.stepping && this.now >= job.leavesAt) this.handOver(job);
    for (let due = this.dueFailure(); due; due = this.dueFailure()) {
      this.nextFailure += 1;
      this.strike(due);
    }
    if (this.personAt !== undefined && this.now >= this.personAt) this.personResumes();
  }

  private dueFailure(): Failure | undefined {
    const failure = this.failures[this.nextFailure];
    return failure && failure.at <= this.now ? failure : undefined;
  }

  /** The driver leaves before its deadline, after a checkpoint: exit code 76. */
  private handOver(job: Job): void {
    const at = this.training.saveAndLeave(this.now);
    this.book('handover', this.now, at);
    job.ending = { at, status: 'Failed', reason: failureFile('hand-over', 76) };
  }

  /** Only a training job can be struck: before that nothing of it can be lost, and its start is restarted by the service. */
  private strike(failure: Failure): void {
    const { job } = this;
    if (!job || job.ending || !this.training.stepping) return;
    const position = this.training.position;
    this.capacityWait = failure.capacityWaitSeconds;
    this.log(this.now, failure.kind, { silent: failure.silent, position, committed: this.training.committed });
    const isReplaced = failure.kind === 'node' && this.mayReplace(job, failure);
    const isInPlace = (isReplaced || failure.kind !== 'node') && this.mayRestart(job) && position > job.beganAt;
    const source = isInPlace && this.constants.slipway.memory && !failure.losesPartner ? 'memory' : 'checkpoint';
    if (this.savesTheStall(failure)) this.training.keep(this.now);
    else this.training.lose(this.now, source);
    if (failure.relapseSeconds !== undefined) this.returning.push(failure);
    this.struck += 1;
    if (!isInPlace) this.ended += 1;
    this.training.intervalSeconds = this.saveIntervalSeconds();
    if (failure.silent) {
      job.stuck = { since: this.now, ...(isInPlace && { source }) };
      return;
    }
    const noticedAt = this.now + this.detectionSeconds(failure);
    this.book('detection', this.now, noticedAt);
    if (isInPlace) {
      if (isReplaced) job.sparesLeft -= failure.losesPartner ? 2 : 1;
      this.restartInPlace(job, noticedAt, source);
    } else {
      const isBroken = failure.kind === 'node' && !isReplaced;
      const reason = isBroken ? 'InternalServerError: hardware failure' : failureFile(...CLASS_AND_CODE[failure.kind]);
      job.ending = { at: noticedAt, status: 'Failed', reason };
    }
  }

  /**
   * Ranks that stand still end before their collectives give up, once a restart repeats no more than after it (containers/trainer:
   * stalls.py): with copies in memory, and where all of them have saved the last step.
   */
  private detectionSeconds(failure: Failure): number {
    const { slipway } = this.constants;
    if (failure.kind !== 'hang' && failure.kind !== 'network') return slipway.crashDetectionSeconds;
    // A rank that hangs does not vote.
    const vote = failure.kind === 'hang' ? slipway.voteSeconds : 0;
    const save = slipway.memory ? 0 : this.saveCostSeconds + this.uploadSeconds;
    const isEarly = slipway.memory !== null || this.savesTheStall(failure);
    const early = slipway.stalledSeconds + save + vote + slipway.evidenceSeconds;
    return isEarly ? Math.min(early, slipway.collectiveTimeoutSeconds) : slipway.collectiveTimeoutSeconds;
  }

  /** As the trainer sets it: with copies in memory, saves only have to cover what ends the job. */
  private saveIntervalSeconds(): number {
    const { memory } = this.constants.slipway;
    const share = memory ? endedShare(spareHosts(this.constants, this.nodes) > 0) : 1;
    const history = { failures: memory ? this.ended : this.struck, nodeDays: (this.nodes * this.now) / 86_400 };
    return boundedSaveSeconds(optimalSaveSeconds(this.saveCostSeconds, this.nodes, share, history));
  }

  /**
   * Where a network breaks all ranks live, and save the last step before their collectives give up (containers/trainer: stalls.py). Of a
   * hang that is not assumed: a rank may be frozen.
   */
  private savesTheStall({ kind }: Failure): boolean {
    const { collectiveTimeoutSeconds, stalledSeconds } = this.constants.slipway;
    return kind === 'network' && stalledSeconds + this.saveCostSeconds + this.uploadSeconds < collectiveTimeoutSeconds;
  }

  /** The service ends the job of a machine that is gone. */
  private mayReplace(job: Job, failure: Failure): boolean {
    return job.sparesLeft >= (failure.losesPartner ? 2 : 1) && !failure.losesMachine;
  }

  private mayRestart(job: Job): boolean {
    job.restartedAt = job.restartedAt.filter((at) => at > this.now - 3600);
    return job.restartedAt.length < (this.constants.slipway.restartsInPlace ?? restartsPerHour(this.nodes));
  }

  private restartInPlace(job: Job, noticedAt: number, source: Source): void {
    const { restartInPlace, slipway } = this.constants;
    job.restartedAt.push(noticedAt);
    const prepared = noticedAt + restartInPlace.prepareSeconds;
    this.book('prepare', noticedAt, prepared);
    const fromMemory = source === 'memory' ? slipway.memory?.loadSeconds : undefined;
    job.stepsAt = this.firstStepAt(prepared, fromMemory ?? 60 * slipway.localLoadMinutes);
    this.restarts += 1;
    this.log(noticedAt, 'restart-in-place', { stepsAt: job.stepsAt, withinTheHour: job.restartedAt.length });
  }

  /** When steps begin on hosts whose ranks run at `at` and load for `loadSeconds`. */
  private firstStepAt(at: number, loadSeconds: number): number {
    const { rendezvousSeconds, compileSeconds } = this.constants.restartInPlace;
    const connected = at + rendezvousSeconds;
    const loaded = connected + loadSeconds;
    this.book('rendezvous', at, connected);
    this.book('load', connected, loaded);
    this.book('compile', loaded, loaded + compileSeconds);
    return loaded + compileSeconds;
  }

  /** The watchdog in the container ends the ranks of a job that stands still; the platform's is behind it. */
  private watchdog(job: Job): void {
    const { stuck } = job;
    if (!stuck || job.ending || this.now < stuck.since + this.silenceSeconds) return;
    this.book('detection', stuck.since, this.now);
    delete job.stuck;
    if (stuck.source) this.restartInPlace(job, this.now, stuck.source);
    else job.ending = { at: this.now, status: 'Failed', reason: failureFile('hang', 70) };
  }

  private get silenceSeconds(): number {
    return this.constants.slipway.silenceMinutes * 60;
  }

  private personResumes(): void {
    this.personAt = undefined;
    const resumed = askResume(this.record, this.ms());
    if (!resumed) return;
    this.record = admitRun(resumed.record, 'admitted', this.ms()).record;
    this.log(this.now, 'person-resumed', {});
  }

  private reconcile(): void {
    if (this.job) this.watchdog(this.job);
    for (let round = 0; round < 8; round++) {
      const actions = decide(this.record, this.observe(), this.ms());
      if (actions.length === 0) break;
      for (const action of actions) this.carryOut(action);
    }
    if (isOver(this.record) && this.personAt === undefined) {
      this.personNeeded += 1;
      this.personAt = this.now + this.constants.personMinutes * 60;
      this.log(this.now, 'person-needed', { reason: this.record.reason });
    }
  }

  private carryOut(action: Action): void {
    switch (action.do) {
      case 'save':
        this.record = action.record;
        for (const e of action.events) if (e.what === 'attempt-ended') this.log(this.now, e.what, { text: e.text });
        return;
      case 'create':
        this.create(this.record.attempt?.jobName ?? '', action.attempt);
        return;
      case 'stop':
        if (this.job && !this.job.ending)
          this.job.ending = { at: this.now + STOP_SECONDS, status: 'Stopped', reason: '' };
        return;
      case 'notify':
        this.record = { ...this.record, outbox: [] };
    }
  }

  private create(name: string, attempt: number): void {
    const { checkpointLoadMinutes, maxRuntimeSeconds } = this.constants;
    const startsAt = this.startOfAttempt();
    const loads = this.training.committed > 0 ? checkpointLoadMinutes * 60 : 0;
    const leavesAt = startsAt + maxRuntimeSeconds - this.saveCostSeconds - 2 * this.uploadSeconds;
    this.job = {
      name,
      attempt,
      startsAt,
      stepsAt: this.firstStepAt(startsAt, loads),
      leavesAt,
      sparesLeft: spareHosts(this.constants, this.nodes),
      restartedAt: [],
      beganAt: 0,
    };
    if (attempt > 1) this.restarts += 1;
    this.takeBack(this.job);
  }

  /** Hosts that were not repaired: refused before the first step if they are remembered and a spare host is left, otherwise they fail again. */
  private takeBack(job: Job): void {
    const { returning } = this;
    this.returning = [];
    for (const failure of returning) {
      if (this.constants.slipway.remembersHosts && job.sparesLeft > 0) {
        job.sparesLeft -= 1;
        continue;
      }
      const again = { ...failure, relapseSeconds: undefined, at: job.stepsAt + (failure.relapseSeconds ?? 0) };
      const after = this.failures.findIndex(({ at }, i) => i >= this.nextFailure && at > again.at);
      this.failures.splice(after < 0 ? this.failures.length : after, 0, again);
    }
  }

  /** When the containers of an attempt that is created now begin. A warm pool stays after an exit code, not after a lost machine. */
  private startOfAttempt(): number {
    const { newAttemptMinutes, warmAttemptMinutes, slipway } = this.constants;
    const isWarm = slipway.warmPool && /^AlgorithmError/.test(this.job?.ending?.reason ?? '');
    const begins = this.now + (isWarm ? 0 : this.capacityWait);
    const startsAt = begins + 60 * (isWarm ? warmAttemptMinutes : newAttemptMinutes);
    this.book('capacity', this.now, begins);
    this.book('start', begins, startsAt);
    return startsAt;
  }

  private observe(): Observed {
    const attempt = this.record.attempt;
    const { committed } = this.training;
    const checkpoints =
      committed > 0
        ? [{ uri: `s3://c/step-${Math.floor(committed)}/`, step: Math.floor(committed), attempt: null }]
        : [];
    return {
      job: attempt && attempt.phase !== 'ended' ? this.describe() : { kind: 'not-asked' },
      heartbeat: this.heartbeat(attempt),
      checkpoints: { kind: 'listed', committed: checkpoints, torn: [] },
      optionsThatDoNotFit: [],
      published: [],
    };
  }

  private describe(): PresentJob {
    const { job } = this;
    if (!job) throw new Error('a job that was never created is described');
    const hasStarted = this.now >= job.startsAt;
    const isOverNow = job.ending !== undefined && this.now >= job.ending.at;
    const status = isOverNow ? (job.ending?.status ?? 'Failed') : 'InProgress';
    return {
      kind: 'present',
      arn: job.name,
      status,
      secondaryStatus: isOverNow ? status : hasStarted ? 'Training' : 'Starting',
      failureReason: isOverNow ? (job.ending?.reason ?? '') : '',
      createdAt: 0,
      trainingStartedAt: hasStarted ? this.ms(job.startsAt) : undefined,
      endedAt: isOverNow ? this.ms() : undefined,
      identity: 'ours',
    };
  }

  private heartbeat(attempt: Attempt | undefined): Observed['heartbeat'] {
    const { job } = this;
    if (!job || !attempt || job.attempt !== attempt.number || this.now < job.startsAt) return undefined;
    const step = this.training.stepping || job.stuck ? Math.floor(this.training.position) : null;
    return {
      attempt: job.attempt,
      step,
      phase: step === null ? 'load' : 'train',
      writtenAt: this.ms(this.now - HEARTBEAT_SECONDS / 2),
    };
  }

  private ms(seconds = this.now): number {
    return EPOCH + Math.round(seconds * 1000);
  }
}

/** What the run takes beside its nodes. */
export const spareHosts = (constants: Constants, nodes: number): number =>
  constants.slipway.spareHosts[String(nodes)] ?? 0;

/** As the driver ends a job that it may not restart in place (containers/driver: exit_codes.py). */
const CLASS_AND_CODE: Readonly<Record<FailureKind, [string, number]>> = {
  process: ['user-code', 1],
  node: ['hardware', 75],
  network: ['hang', 70],
  hang: ['hang', 70],
};

const failureFile = (word: string, code: number): string =>
  `AlgorithmError: {"slipway":1,"class":"${word}","code":${code},"reason":"simulated"}, exit code: ${code}`;
