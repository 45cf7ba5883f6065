import { TICK_MS } from '../../../lib/core/lifecycle/health/observation-schedule';
import { isLive, type SimJob } from '../job/job';
import type { SimRun } from '../world/sim-run';
import { Invariant, span } from './invariant';
import { CONTROL_NEEDS, RELEASE_NEEDS, requestedLately } from './jobs';

const HOUR_MS = 3_600_000;
/** No run waits this long without a notice that says why: a day, until the next tick, and until the tick has been worked off. */
const SILENT_WAIT_MS = 24 * HOUR_MS + 2 * TICK_MS;

/** Every run that can end does; none waits indefinitely without a notice that says why. */
export class Ends extends Invariant {
  readonly name = 'ends';

  /** People repeat a start or a resume; if every service answers, one of the calls is accepted or refused with a reason. */
  override onGivenUp(run: SimRun, action: string): void {
    const needs = action === 'release' ? RELEASE_NEEDS : CONTROL_NEEDS;
    const isCalm = this.scene.troubles.calmSince(needs) < this.now;
    if (action !== 'stop' && isCalm) this.break(`every call to ${action} run ${run.id} failed`);
  }

  /** A run that was confirmed and is not completed may be resumed, unless the budget of its team is spent. */
  override onDenied(run: SimRun, action: 'stop' | 'resume', reason: string): void {
    const isSpent = this.scene.waiting.maySpendNoMore(run.team);
    const may = run.record?.confirmed === true && run.state !== 'completed' && !isSpent && !this.isPoisoned(run);
    if (action === 'resume' && may) this.break(`the resume of run ${run.id} was refused: ${reason}`);
  }

  /** When control grants a resume, it is already in the table. */
  override onGranted(run: SimRun, action: 'stop' | 'resume'): void {
    const isKept = run.wantsToRun || run.isOver || requestedLately(run, this.now);
    if (action === 'resume' && !isKept) this.break(`the resume of run ${run.id} was granted and not kept`);
  }

  override onEnd(): void {
    for (const run of this.scene.world.runs) {
      if (run.startedAt === undefined || run.isOver || !run.record) continue;
      const live = run.jobs.find(isLive);
      if (live?.held && live.stopAt === undefined && !live.isHung) continue;
      const since = this.since(run, live);
      const notified = run.notices.some(({ at }) => at >= since);
      if (notified || this.now - since < SILENT_WAIT_MS || this.waitsForOurs(run)) continue;
      this.break(
        `run ${run.id} is ${run.state} since ${span(this.now - since)} without a notice: ${run.record.reason}`,
      );
    }
  }

  private since(run: SimRun, live: SimJob | undefined): number {
    if (!live) return this.scene.waiting.since(run);
    return live.stopAt ?? live.history.at(-1)?.at ?? 0;
  }

  /** Other runs of the environment hold what it needs, and will release it. */
  private waitsForOurs(run: SimRun): boolean {
    const { waiting, world } = this.scene;
    if (!waiting.isReady(run)) return false;
    const lacking = [...waiting.needsOf(run)].filter(([pool, needed]) => needed > waiting.free(pool, run));
    const holders = world.runs.filter((other) => other !== run && other.jobs.some(isLive));
    return (
      lacking.length > 0 &&
      lacking.every(([pool, needed]) => {
        const mayComeBack = holders.reduce((sum, other) => sum + (waiting.needsOf(other).get(pool) ?? 0), 0);
        return needed <= waiting.limitOf(pool) && needed <= waiting.free(pool, run) + mayComeBack;
      })
    );
  }
}
