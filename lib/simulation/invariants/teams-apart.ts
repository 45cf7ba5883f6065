import type { ControlAnswer } from '../../contracts/control';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';
import { CONTROL_NEEDS } from './jobs';

/** To another team a run is like one that does not exist: nobody else stops it, resumes it, or confirms its uploads. */
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
