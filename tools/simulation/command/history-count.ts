/** How many histories of a simulation were played so far, and which seeds failed. */
export class HistoryCount {
  private played = 0;
  private readonly failed: number[] = [];

  /** @param now time in milliseconds */
  constructor(
    private readonly whole: number,
    private readonly now: () => number = () => performance.now(),
    private readonly began: number = now(),
  ) {}

  add(seed: number, ok: boolean): void {
    this.played += 1;
    if (!ok) this.failed.push(seed);
  }

  /** For example `620 of 2,000 histories played, 0 failed, about 9 min left`. */
  progress(): string {
    if (this.played === 0) return this.counts();
    if (this.played === this.whole) return this.found() + (this.failed.length > 0 ? '; shrinking it' : '');
    const minutes = ((this.now() - this.began) * (this.whole / this.played - 1)) / 60_000;
    return `${this.counts()}, about ${Math.max(1, Math.round(minutes))} min left`;
  }

  /** For example `620 of 2,000 histories played, 2 failed, the first with --seed 31`. */
  found(): string {
    const first = this.failed.length === 0 ? '' : `, the first with --seed ${Math.min(...this.failed)}`;
    return `${this.counts()}${first}`;
  }

  private counts(): string {
    const [played, whole] = [this.played, this.whole].map((count) => count.toLocaleString('en-US'));
    return `${played} of ${whole} histories played, ${this.failed.length} failed`;
  }
}
