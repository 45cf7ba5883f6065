import type { RunSpec } from '../../../../lib/core/config/run-spec';
import type { SimMs } from '../../core/clock';
import type { S3Object } from '../../services/s3-object';

/** A complete checkpoint of a run. */
export interface Commit {
  step: number;
  attempt: number;
  at: SimMs;
  /** It is listed, but an attempt that loads it fails with exit code 71. */
  isUnreadable: boolean;
}

/** How the jobs of one run behave. */
export interface Behaviour {
  /** Steps of the whole run. */
  totalSteps: number;
  secondsPerStep: number;
  commitEveryMs: number;
  startMs: number;
  checkpointObjects: number;
}

/** Where a started job of the run begins. `s3`: at the address in job.json; `newest`: at its newest commit; `zero`: at the beginning. */
export type ResumeFrom = 's3' | 'newest' | 'zero';

const folderOf = (step: number): string => `step-${step}/`;

/** The true state of a run's training, independent of what the control plane knows. */
export class RunTruth {
  /** Oldest first; the trainer keeps the newest `keep`. */
  readonly commits: Commit[] = [];
  /** Number of steps that jobs of the run made; repeated steps count each time. */
  madeSteps = 0;
  /** Number of steps when the run completed. */
  resultStep: number | undefined;
  /** Step at which the first attempt began: `checkpoints.startFrom`. */
  baseStep = 0;
  /** The last heartbeat of an attempt that has ended. */
  lastHeartbeat: S3Object | undefined;
  /** Bucket and key prefix of its checkpoints; undefined when they are not in S3. */
  readonly place: { bucket: string; prefix: string } | undefined;
  readonly heartbeat: { bucket: string; key: string } | undefined;
  /** Saves that were in progress when an attempt died, by step, and when it last did: folders without a marker. */
  private readonly torn = new Map<number, SimMs>();
  private readonly commitCounts = new Map<number, number>();
  private readonly objectsOf = new WeakMap<Commit, S3Object[]>();
  private listing: { version: number; objects: S3Object[] } | undefined;
  private version = 0;

  constructor(
    readonly runId: string,
    readonly spec: RunSpec,
    readonly behaviour: Behaviour,
    { place, heartbeat }: Pick<RunTruth, 'place' | 'heartbeat'>,
  ) {
    this.place = place;
    this.heartbeat = heartbeat;
  }

  get isBuiltin(): boolean {
    return this.spec.code.builtin !== undefined;
  }

  /** Whether commits can be observed in S3, by COMMITTED.json or by the script's own marker. */
  get seesCommits(): boolean {
    return this.place !== undefined && (this.isBuiltin || this.spec.checkpoints.committedMarker !== undefined);
  }

  get resumeFrom(): ResumeFrom {
    const { mode } = this.spec.checkpoints;
    if (mode === 'managed' || (mode === 'fsx' && this.isBuiltin)) return 'newest';
    return mode === 'direct' && this.seesCommits ? 's3' : 'zero';
  }

  /** Whether the heartbeat and the metrics contain the step. */
  get showsSteps(): boolean {
    return this.isBuiltin || this.spec.progress.stepRegex !== undefined;
  }

  get newest(): Commit | undefined {
    return this.commits[this.commits.length - 1];
  }

  /** The newest commit that can be loaded. */
  get newestReadable(): Commit | undefined {
    return this.commits.findLast((commit) => !commit.isUnreadable);
  }

  commit(step: number, attempt: number, at: SimMs): void {
    if (this.resumeFrom === 'zero') return;
    this.commitCounts.set(attempt, this.committedIn(attempt) + 1);
    const others = this.commits.filter((commit) => commit.step !== step);
    others.push({ step, attempt, at, isUnreadable: false });
    others.sort((a, b) => a.step - b.step);
    const keep = Math.max(1, this.spec.checkpoints.keep);
    // Unreadable commits with higher steps may exist besides the one that was just written, which is never the one to delete.
    while (others.length > keep && (others[0] as Commit).step !== step) others.shift();
    this.replace(others);
  }

  /** The program died during a save: half of the objects exist. */
  tear(step: number, at: SimMs): void {
    if (!this.place || !this.seesCommits || this.commits.some((commit) => commit.step === step)) return;
    this.torn.set(step, at);
    this.version += 1;
  }

  /** How many commits an attempt made. */
  committedIn(attempt: number): number {
    return this.commitCounts.get(attempt) ?? 0;
  }

  /** Step of the newest commit of an attempt that says whose it is and can be loaded. */
  newestStepOf(attempt: number): number | undefined {
    return this.isBuiltin
      ? this.commits.findLast((one) => one.attempt === attempt && !one.isUnreadable)?.step
      : undefined;
  }

  /** The trainer deletes the markers of later commits before it searches for the newest (job.json, `rollback`). */
  rollBack(toStep: number, beforeAttempt: number): void {
    this.replace(this.commits.filter(({ step, attempt }) => step <= toStep || attempt >= beforeAttempt));
  }

  /** Makes the newest commits unreadable. */
  damage(count: number): void {
    for (const commit of this.commits.slice(-count)) commit.isUnreadable = true;
  }

  private replace(commits: Commit[]): void {
    this.commits.splice(0, this.commits.length, ...commits);
    this.version += 1;
  }

  /** Step of the checkpoint at a URI; undefined when the URI does not contain it. */
  stepOf(uri: string): number | undefined {
    const own = this.place && `s3://${this.place.bucket}/${this.place.prefix}`;
    const rest = own !== undefined && uri.startsWith(own) ? uri.slice(own.length) : uri.slice(uri.lastIndexOf('/') + 1);
    const digits = /\d+/.exec(rest)?.[0];
    return digits === undefined ? undefined : Number(digits);
  }

  /** Objects of its checkpoints, with keys relative to its prefix. */
  objects(): readonly S3Object[] {
    if (this.listing?.version !== this.version) {
      const whole = this.commits.flatMap((commit) => this.written(commit));
      const objects = this.torn.size === 0 ? whole : [...whole, ...this.halves()];
      this.listing = { version: this.version, objects };
    }
    return this.listing?.objects ?? [];
  }

  /** Objects of saves that were not completed later. */
  private halves(): S3Object[] {
    const written = new Set(this.commits.map(({ step }) => step));
    return [...this.torn].filter(([step]) => !written.has(step)).flatMap(([step, at]) => this.half(step, at));
  }

  /** The objects of a commit never change. */
  private written(commit: Commit): S3Object[] {
    let objects = this.objectsOf.get(commit);
    if (!objects) {
      objects = this.isBuiltin ? this.built(commit) : this.own(commit.step, commit.at);
      this.objectsOf.set(commit, objects);
    }
    return objects;
  }

  private half(step: number, at: SimMs): S3Object[] {
    if (!this.isBuiltin) return this.own(step, at).slice(0, 1);
    return this.shards(step, at).slice(0, Math.ceil(this.behaviour.checkpointObjects / 2));
  }

  /** The objects that the ranks write for a step. */
  private shards(step: number, at: SimMs): S3Object[] {
    return Array.from({ length: this.behaviour.checkpointObjects }, (_, i) => ({
      key: `${folderOf(step)}__${i}_0.distcp`,
      bytes: 1_000_000 + step,
      at,
    }));
  }

  private built(commit: Commit): S3Object[] {
    const folder = folderOf(commit.step);
    const shards = this.shards(commit.step, commit.at);
    let text: string | undefined;
    const marker: S3Object = {
      key: `${folder}COMMITTED.json`,
      bytes: 500 + 60 * shards.length,
      at: commit.at,
      body: () => {
        text ??= JSON.stringify({
          schema: 1,
          runId: this.runId,
          attempt: commit.attempt,
          step: commit.step,
          objects: shards.map(({ key, bytes }) => ({ key: key.slice(folder.length), bytes })),
        });
        return text;
      },
    };
    return [...shards, marker];
  }

  /** A checkpoint of a custom script: another file, and then its marker, with the step in place of each `*`. */
  private own(step: number, at: SimMs): S3Object[] {
    const marker = (this.spec.checkpoints.committedMarker ?? 'step-*/model.pt').replaceAll('*', String(step));
    const folder = marker.slice(0, marker.lastIndexOf('/') + 1);
    const other = folder === '' ? `optimizer-${step}.bin` : `${folder}optimizer.bin`;
    return [
      { key: other, bytes: 2000, at },
      { key: marker, bytes: 1000, at },
    ];
  }
}
