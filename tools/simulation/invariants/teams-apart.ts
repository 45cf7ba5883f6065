import type { ControlAnswer } from '../../../lib/core/contracts/control';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';
import { CONTROL_NEEDS } from './jobs';

/** For another team a run behaves as if it did not exist: another team can neither stop nor resume it, nor confirm its uploads. */
export class TeamsApart extends Invariant {
  readonly name = 'teams-apart';

  override onStranger(run: SimRun, action: string, answer: ControlAnswer | undefined): void {
    if (answer?.ok) this.break(`another team's ${action} of run ${run.id} was granted`);
    const isCalm = this.scene.troubles.calmSince(CONTROL_NEEDS) < this.now;
    const isUnknown = answer && 'issues' in answer && answer.issues.some(({ rule }) => rule === 'run/unknown');
    if (isCalm && !isUnknown)
      this.break(`another team's ${action} of run ${run.id} was not answered like one of an unknown run`);
  }
}
