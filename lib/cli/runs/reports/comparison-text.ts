import { textTable } from '../../../core/config/formats/text-table';
import type { ComparedRun } from '../../../report/compare/compared-run';
import { orDash } from '../../../report/page/format';

/** Runs as rows of a table. */
export function comparisonText(rows: readonly ComparedRun[]): string {
  return textTable(
    ['run', 'state', 'step', 'loss', 'tokens/s/GPU', 'goodput', 'USD', 'with'],
    rows.map((r) => [
      r.runId,
      r.state,
      orDash(r.step, String),
      orDash(r.loss, (l) => l.toFixed(4)),
      orDash(r.tokensPerSecondPerGpu, (t) => t.toFixed(0)),
      orDash(r.goodput, (g) => `${(100 * g).toFixed(1)} %`),
      orDash(r.spendUsd, (u) => u.toFixed(2)),
      r.label,
    ]),
  );
}
