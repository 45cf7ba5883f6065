import { decide } from '../../../../lib/core/lifecycle/decide';
import {
  admitRun,
  askHandOver,
  askResume,
  askStop,
  confirmRun,
  type IntentChange,
} from '../../../../lib/core/lifecycle/intent';
import type { CreateOutcome, JobObservation, Observed } from '../../../../lib/core/lifecycle/observed';
import type { PresentJob } from '../../../../lib/core/lifecycle/record';
import { type Checkpoint, type EpochMs, isOver, type RunRecord } from '../../../../lib/core/lifecycle/record';
import { admitted, checkpoint, T0 } from './records';

interface ModelJob extends PresentJob {
  attempt: number;
  resumeFrom: Checkpoint | null;
  /** Describe does not show it before this time. */
  shownAt: EpochMs;
}

export type CreateFault =
  | 'none'
  | 'lost-before'
  | 'lost-after'
  | 'throttled'
  | 'not-attempted'
  | 'limit'
  | 'hidden-at-first';

/**
 * A service, a store and a run table small enough to be driven through hundreds of thousands of random histories. What must never
 * happen is checked where it would happen.
 */
export class ModelWorld {
  now = T0;
  record: RunRecord;
  jobs = new Map<string, ModelJob>();
  /** Steps whose COMMITTED.json is there and whole; `torn` has the rest. */
  committed: Checkpoint[] = [];
  torn: Checkpoint[] = [];
  fault: CreateFault = 'none';
  describeFails = false;
  listFails = false;
  /** The function dies after the write, before the effect. */
  diesAfterSave = false;
  stopsAsked = 0;
  private step = 0;

  constructor(changes: Partial<RunRecord> = {}) {
    this.record = admitted({ confirmed: true, admitted: true, ...changes });
  }

  pass(milliseconds: number): void {
    this.now += milliseconds;
  }

  live(): ModelJob[] {
    return [...this.jobs.values()].filter((j) => j.status === 'InProgress' || j.status === 'Stopping');
  }

  /** One pass of reconcile, as lib/control/reconcile makes it. */
  reconcile(rounds = 6): void {
    let create: CreateOutcome | undefined;
    for (let round = 0; round < rounds; round++) {
      const observed = this.observe(create);
      const actions = decide(this.record, observed, this.now);
      const save = actions.find((a) => a.do === 'save');
      if (save) this.write(save.record, save.previousVersion);
      if (save && this.diesAfterSave) return;
      create = undefined;
      for (const action of actions) {
        if (action.do === 'create') create = this.create(action.attempt, action.resumeFrom);
        if (action.do === 'stop') this.stop(action.jobName);
        if (action.do === 'notify') this.record = { ...this.record, outbox: [] };
      }
      if (!save && create === undefined) return;
    }
  }

  /** A pass that finds the world as the pass before left it must write nothing and call nothing. */
  reconcileTwice(): void {
    this.reconcile(20);
    const before = [this.record.version, this.jobs.size, this.stopsAsked].join();
    this.reconcile(20);
    const after = [this.record.version, this.jobs.size, this.stopsAsked].join();
    if (!this.diesAfterSave && before !== after) throw new Error(`a second pass was not idle: ${before} -> ${after}`);
  }

  ask(requestChange: 'stop' | 'resume' | 'admit' | 'preempt'): void {
    const change = this.requestChange(requestChange);
    if (change) this.write(change.record, this.record.version);
  }

  private requestChange(requestChange: 'stop' | 'resume' | 'admit' | 'preempt'): IntentChange | undefined {
    if (requestChange === 'preempt')
      return askHandOver(this.record, { why: 'preempted', at: this.now, text: 'asked to make room' });
    if (requestChange === 'stop') return askStop(this.record, 'asked', this.now);
    if (requestChange === 'resume') return askResume(this.record, this.now);
    const waits = !isOver(this.record) && !this.record.admitted && this.record.desired === 'run';
    return waits ? admitRun(confirmRun(this.record, this.now)?.record ?? this.record, 'admitted', this.now) : undefined;
  }

  private write(next: RunRecord, previousVersion: number): void {
    if (this.record.version !== previousVersion) throw new Error('a write went through on an old version');
    const isRequested = next.policy.lossPolicy === 'rollback' && next.rollback !== this.record.rollback;
    if (!isRequested && (next.committed?.step ?? -1) < (this.record.committed?.step ?? -1)) {
      throw new Error('committed step went back');
    }
    this.record = next;
  }

  private observe(create: CreateOutcome | undefined): Observed {
    const attempt = this.record.attempt;
    const accepted = create?.kind === 'accepted';
    const asks = attempt && attempt.phase !== 'ended' && !accepted && !isOver(this.record);
    return {
      job: asks ? this.describe(attempt.jobName, attempt.number) : { kind: 'not-asked' },
      create,
      checkpoints: this.listFails
        ? { kind: 'unreadable', error: '503' }
        : { kind: 'listed', committed: [...this.committed], torn: this.torn.map((t) => ({ uri: t.uri, why: 'torn' })) },
      optionsThatDoNotFit: [],
      published: [],
    };
  }

  private describe(name: string, attempt: number): JobObservation {
    if (this.describeFails) return { kind: 'unreadable', error: '500' };
    const job = this.jobs.get(name);
    if (!job || job.shownAt > this.now) return { kind: 'absent' };
    return { ...job, identity: job.attempt === attempt ? 'ours' : 'foreign' };
  }

  private create(attempt: number, resumeFrom: Checkpoint | null): CreateOutcome {
    const { jobName = '' } = this.record.attempt ?? {};
    const fault = this.fault;
    this.fault = 'none';
    if (fault === 'lost-before') return { kind: 'doubtful', error: 'timeout' };
    if (fault === 'throttled' || fault === 'not-attempted') return { kind: fault, error: 'x' };
    if (this.jobs.has(jobName)) return { kind: 'exists', error: 'ResourceInUse' };
    if (fault === 'limit') return { kind: 'limit', error: 'ResourceLimitExceeded' };
    if (this.live().length > 0) throw new Error(`a second live job: ${jobName} beside ${this.live()[0]?.arn}`);
    if (resumeFrom && !this.committed.some((c) => c.uri === resumeFrom.uri)) {
      throw new Error(`resumed from ${resumeFrom.uri}, which is not committed`);
    }
    if (!resumeFrom && this.committed.length > 0) throw new Error('began again although something is committed');
    this.forget();
    this.step = resumeFrom?.step ?? 0;
    const shownAt = this.now + (fault === 'hidden-at-first' ? 3000 : 0);
    this.jobs.set(jobName, {
      kind: 'present',
      arn: jobName,
      status: 'InProgress',
      secondaryStatus: 'Starting',
      failureReason: '',
      createdAt: this.now,
      identity: 'ours',
      attempt,
      resumeFrom,
      shownAt,
    });
    return fault === 'lost-after' ? { kind: 'doubtful', error: 'timeout' } : { kind: 'accepted', arn: jobName };
  }

  /** What the trainer does at its start after a rollback: later markers of earlier attempts go. */
  private forget(): void {
    const { rollback } = this.record;
    if (!rollback) return;
    const counts = (c: Checkpoint) => c.step <= rollback.toStep || (c.attempt ?? 0) >= rollback.beforeAttempt;
    this.committed = this.committed.filter(counts);
  }

  private stop(jobName: string): void {
    if (!this.record.attempt?.stop) throw new Error('a stop that nobody answers for');
    this.stopsAsked += 1;
    const job = this.jobs.get(jobName);
    if (job?.status === 'InProgress') Object.assign(job, { status: 'Stopping', secondaryStatus: 'Stopping' });
  }

  /** The live job goes on: training, a commit, or a torn save. */
  train(save: 'none' | 'whole' | 'torn'): void {
    const job = this.live()[0];
    if (job?.status !== 'InProgress') return;
    Object.assign(job, { secondaryStatus: 'Training', trainingStartedAt: job.trainingStartedAt ?? this.now });
    this.step += 10;
    // A step that is written again replaces what was there.
    this.committed = this.committed.filter((c) => save === 'none' || c.step !== this.step);
    if (save === 'whole') this.committed.unshift(checkpoint(this.step, job.attempt));
    if (save === 'torn') this.torn.unshift(checkpoint(this.step, job.attempt));
    this.committed.sort((a, b) => b.step - a.step);
  }

  end(status: 'Completed' | 'Failed' | 'Stopped', failureReason: string, secondaryStatus: string = status): void {
    const job = this.live()[0];
    if (!job) return;
    const final =
      job.status === 'Stopping' ? { status: 'Stopped', secondaryStatus: 'Stopped' } : { status, secondaryStatus };
    Object.assign(job, final, { failureReason, endedAt: this.now });
  }

  /** Somebody deletes the newest job that is over. */
  deleteJob(): void {
    const done = [...this.jobs].filter(([, job]) => !this.live().includes(job)).at(-1);
    if (done) this.jobs.delete(done[0]);
  }
}
