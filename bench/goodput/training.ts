/** What a training job does between two events: steps, blocked saves, commits. Times and positions in seconds. */
export interface SavePolicy {
  blockedSeconds: number;
  intervalSeconds: number;
  /** From a save's start to its commit. */
  uploadSeconds: number;
  /** Copies in memory: how often, and the share of the time for which they block training. */
  copies?: { everySeconds: number; overhead: number };
}

/** What is there to continue from: the newest copy in memory, or the newest commit. */
export type Source = 'memory' | 'checkpoint';

export class Training {
  /** Seconds of steps that are done, kept or not. */
  position = 0;
  /** Of these, what the newest commit holds. */
  committed = 0;
  /** Seconds in which saves kept training waiting, and seconds of steps that had to be done again. */
  blockedSeconds = 0;
  lostSeconds = 0;
  copySeconds = 0;
  /** Position that is in memory when steps begin. */
  private began = 0;
  private at = 0;
  private isStepping = false;
  private blockedUntil = 0;
  private saveAt = Number.POSITIVE_INFINITY;
  private pending: { position: number; commitAt: number } | undefined;

  constructor(private policy: SavePolicy) {}

  get stepping(): boolean {
    return this.isStepping;
  }

  /** Steps begin at `at`, from where `lose` or `keep` left the run. */
  begin(at: number): void {
    this.advance(at);
    this.began = this.position;
    this.isStepping = true;
    this.saveAt = at + this.policy.intervalSeconds;
    this.pending = undefined;
  }

  /** Steps end at `at`; what is in no source is lost. A save that is still travelling is lost too, and a copy of the last step. */
  lose(at: number, source: Source): void {
    this.stop(at);
    const { copies } = this.policy;
    const copied = copies && source === 'memory' ? Math.max(this.began, this.position - copies.everySeconds) : 0;
    const kept = Math.max(this.committed, copied);
    this.lostSeconds += this.position - kept;
    this.position = kept;
  }

  /** Steps end at `at`, and what was done is saved before the ranks are told to end. */
  keep(at: number): void {
    this.stop(at);
    this.committed = this.position;
  }

  /** A save policy that learns from the failures seen so far. */
  set intervalSeconds(seconds: number) {
    this.policy = { ...this.policy, intervalSeconds: seconds };
  }

  /** Steps stand still at `at` and nobody knows yet. */
  stop(at: number): void {
    this.advance(at);
    this.isStepping = false;
    this.saveAt = Number.POSITIVE_INFINITY;
    this.pending = undefined;
  }

  /** A save that is waited for, as before a planned hand-over. Returns when it is committed. */
  saveAndLeave(at: number): number {
    this.advance(at);
    const done = at + this.policy.blockedSeconds + this.policy.uploadSeconds;
    this.committed = this.position;
    this.stop(at);
    return done;
  }

  /** Lives through the time up to `at`. */
  advance(at: number): void {
    while (this.at < at) {
      const next = Math.min(at, this.saveAt, this.pending?.commitAt ?? Number.POSITIVE_INFINITY);
      this.step(next);
      if (this.pending && next >= this.pending.commitAt) {
        this.committed = Math.max(this.committed, this.pending.position);
        this.pending = undefined;
      }
      if (next >= this.saveAt) this.save(next);
    }
  }

  private save(at: number): void {
    // One save travels at a time: the next one waits for the one before.
    this.pending ??= { position: this.position, commitAt: at + this.policy.blockedSeconds + this.policy.uploadSeconds };
    this.blockedUntil = at + this.policy.blockedSeconds;
    this.saveAt = this.blockedUntil + this.policy.intervalSeconds;
  }

  private step(to: number): void {
    if (this.isStepping) {
      const stepsFrom = Math.max(this.at, Math.min(this.blockedUntil, to));
      const copying = (to - stepsFrom) * (this.policy.copies?.overhead ?? 0);
      this.blockedSeconds += stepsFrom - this.at;
      this.copySeconds += copying;
      this.position += to - stepsFrom - copying;
    }
    this.at = to;
  }
}
