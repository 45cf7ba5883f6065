import { TICK_SECONDS } from '../../../lib/core/contracts/launcher';
import { ITEM, teamPageKey } from '../../../lib/core/contracts/storage';
import type { SimMs } from '../core/clock';
import { isLive, type SimJob } from '../job/job';
import type { SimRun } from '../world/sim-run';
import { Invariant, span, UNSEEN_MS } from './invariant';

const DESCRIBE = 'sagemaker:DescribeTrainingJob';
const LIST = 's3:ListObjectsV2';
/**
 * An unknown state is told 20 minutes after it is seen, at the next two observations; a steady run is described every 10 minutes, and its
 * checkpoints are listed every hour.
 */
const NOTIFIED_WITHIN_MS = { 'job-unreadable': 40 * 60_000, 'checkpoints-unreadable': 100 * 60_000 };
/** Two ticks, and the longest message. */
const ACTS_WITHIN_MS = 2 * TICK_SECONDS * 1000 + 60_000;

/**
 * What the functions write to S3 is below the folder of one run of the team, or is the page of a team; what they tag belongs to a run that
 * has ended.
 */
export class OwnPrefix extends Invariant {
  readonly name = 'own-prefix';

  override onObjectWritten(bucket: string, key: string, isTag: boolean): void {
    const { world } = this.scene;
    const [root, team, runId = ''] = key.split('/');
    if (team !== undefined && key === teamPageKey(team) && !isTag) {
      this.checkPage(bucket, key, team);
      return;
    }
    const item = world.table.find({ runId: { S: runId }, item: { S: ITEM.run } });
    if (root !== 'runs' || item?.team?.S !== team)
      this.break(`${bucket}/${key} was written, which belongs to no run of team ${team}`);
    const run = world.runs.find((one) => one.runId === runId);
    if (isTag && run?.jobs.some((job) => isLive(job)))
      this.break(`${bucket}/${key} was tagged while a job of run ${run.id} was live`);
  }

  /** A page is that of a team of the environment, in its artifact bucket, and shows no run of another team. */
  private checkPage(bucket: string, key: string, team: string): void {
    const { world } = this.scene;
    const isThere = world.runs.every(({ descriptor }) => descriptor.artifactBucket === bucket);
    if (!isThere || !(team in world.scenario.environment.teams))
      this.break(`${bucket}/${key} was written, which is the page of no team`);
    const page = world.s3.read(bucket, key) ?? '';
    const other = world.runs.find((run) => run.team !== team && page.includes(`<code>${run.runId}</code>`));
    if (other) this.break(`${bucket}/${key} was written, which shows run ${other.id} of team ${other.team}`);
  }
}

/** A run on demand does not train on above its cap, whatever cannot be read: the stop needs no answer of Describe. */
export class CapKept extends Invariant {
  readonly name = 'cap-kept';

  override onCheck(): void {
    const { world, troubles } = this.scene;
    const calm = troubles.calmSince(['dynamodb', 'sqs', 'sagemaker:StopTrainingJob', 'sagemaker:CreateTrainingJob']);
    if (this.now <= calm || world.state.skewMs() !== 0) return;
    for (const run of world.runs) {
      const cap = run.record?.policy.maxCostUsd;
      const live = run.jobs.find((job) => isLive(job) && job.status === 'InProgress' && job.stopAt === undefined);
      if (cap == null || !live || isEstimated(run) || this.isPoisoned(run, ACTS_WITHIN_MS)) continue;
      const billed = run.jobs.reduce((sum, job) => sum + world.prices.billedUsd(job, this.now), 0);
      const unknown = run.jobs.reduce((sum, job) => sum + this.unknownUsd(job), 0);
      const allowed = cap + this.usdOf(live, ACTS_WITHIN_MS) + unknown + 0.02 * cap;
      if (billed > allowed)
        this.break(`run ${run.id} costs $${billed.toFixed(0)} of $${cap}, and ${live.name} goes on`);
    }
  }

  /** What a job cost after its last heartbeat, if it hung until it was deleted while Describe failed: nobody can know that. */
  private unknownUsd(job: SimJob): number {
    const { deletedAt, silentSince } = job;
    if (deletedAt === undefined || silentSince === undefined || silentSince >= deletedAt) return 0;
    const isUnread = this.callFaults(DESCRIBE, deletedAt - UNSEEN_MS, deletedAt).length > 0;
    return isUnread ? this.usdOf(job, deletedAt - silentSince) : 0;
  }

  private usdOf(job: SimJob, ms: number): number {
    return this.scene.world.prices.poolUsd(job, ms);
  }
}

/** Cost that is known exactly only after the end of the job: spot, and clusters that the service chooses. */
const isEstimated = ({ truth }: SimRun): boolean =>
  truth?.spec.compute.capacity === 'spot' || (truth?.spec.compute.alternatives.length ?? 0) > 0;

/** A person is told of a job whose state, or whose checkpoints, cannot be read. */
export class UnknownNotified extends Invariant {
  readonly name = 'unknown-told';
  /** When each job was first seen to be unreadable, by the notice that must say so. */
  private readonly since = {
    'job-unreadable': new Map<SimJob, number>(),
    'checkpoints-unreadable': new Map<SimJob, number>(),
  };

  override onCheck(): void {
    for (const run of this.scene.world.runs) {
      const job = run.jobs.findLast(isLive);
      const isKnown = !job || this.isNew(run, job);
      const isUndescribed = this.isDenied(DESCRIBE);
      const isUnlisted =
        !isUndescribed && job?.startedAt !== undefined && run.truth?.seesCommits && this.isDenied(LIST);
      this.judge(run, isKnown || !isUndescribed ? undefined : job, 'job-unreadable');
      this.judge(run, isKnown || !isUnlisted ? undefined : job, 'checkpoints-unreadable');
    }
  }

  /** @param job that cannot be read now; undefined = it can */
  private judge(run: SimRun, job: SimJob | undefined, alert: keyof UnknownNotified['since']): void {
    const first = this.since[alert];
    if (!job) {
      for (const other of run.jobs) first.delete(other);
      return;
    }
    const since = first.get(job) ?? this.now;
    first.set(job, since);
    const calm = this.scene.troubles.calmSince(['dynamodb', 'sqs', 'sns']);
    const answered = this.lastAnswered(alert === 'job-unreadable' ? DESCRIBE : LIST);
    if (this.now - Math.max(since, calm, answered) < NOTIFIED_WITHIN_MS[alert]) return;
    const isNotified = run.notices.some(({ id }) => id.startsWith(`${alert}/${job.name}/`));
    if (!isNotified) this.break(`nobody was told for ${span(this.now - since)} of ${alert} of ${job.name}`);
  }

  /** When a fault of a call last ended so that calls were answered again, however shortly, between two checks. */
  private lastAnswered(call: string): SimMs {
    const ends = this.callFaults(call, 0, this.now).map(({ to = Number.POSITIVE_INFINITY }) => to * 1000);
    return Math.max(0, ...ends.filter((end) => end < this.now && !this.isDenied(call, end + 1)));
  }

  /** Whether every answer to a call fails or is lost. Of several faults of a call the first one takes effect. */
  private isDenied(call: string, when: SimMs = this.now): boolean {
    const faults = this.callFaults(call, when, when);
    const fault = faults.find(({ key, nth }) => key === undefined && nth === undefined);
    return fault?.error !== undefined || fault?.answerLost === true;
  }

  private isNew(run: SimRun, job: SimJob): boolean {
    const attempt = run.record?.attempt;
    return this.isPoisoned(run, 45 * 60_000) || attempt?.jobName !== job.name || attempt.phase === 'ended';
  }
}
