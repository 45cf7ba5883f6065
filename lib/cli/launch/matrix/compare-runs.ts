import type { Descriptor } from '../../../core/config/descriptor';
import type { StartAnswer, StatusAnswer } from '../../../core/contracts/control';
import { type ComparedRun, measured } from '../../../report/compare/compared-run';
import { assembleReport } from '../../../report/read/assemble';
import { readSources } from '../../runs/reports/report-sources';
import type { MatrixCell } from './matrix';

/** A run of a comparison, submitted. */
export type Launched = MatrixCell & Pick<StartAnswer, 'runId' | 'state' | 'queuePosition'>;

/** Results side by side, the fastest first. */
export async function compareRuns(
  descriptor: Descriptor,
  launched: readonly Launched[],
  ended: readonly StatusAnswer[],
): Promise<ComparedRun[]> {
  const rows: ComparedRun[] = [];
  for (const [i, { label, set, runId }] of launched.entries()) {
    const steps = assembleReport(await readSources(descriptor, runId, new Date(), { overrides: set })).steps ?? [];
    const { state = 'unknown', step = null, goodput = null, spendUsd = null } = ended[i] ?? {};
    rows.push({ label, runId, state, step, goodput, spendUsd, ...measured(steps) });
  }
  return rows.sort((a, b) => (b.tokensPerSecondPerGpu ?? 0) - (a.tokensPerSecondPerGpu ?? 0));
}
