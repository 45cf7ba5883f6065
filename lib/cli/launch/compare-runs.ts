import type { StartAnswer, StatusAnswer } from '../../contracts/control';
import { orDash } from '../../report/page/format';
import { assembleReport } from '../../report/read/assemble';
import { median } from '../../report/run/median';
import type { ReportStep } from '../../report/run/run-report';
import type { Descriptor } from '../../spec/descriptor';
import { textTable } from '../../spec/text-table';
import { readSources } from '../runs/report-sources';
import type { MatrixCell } from './matrix';

/** A run of a comparison, submitted. */
export type Launched = MatrixCell & Pick<StartAnswer, 'runId' | 'state' | 'queuePosition'>;

/** What a run of a comparison came to. Throughput and loss are those that its rank 0 printed; null = it printed none. */
export interface ComparedRun {
  label: string;
  runId: string;
  state: string;
  step: number | null;
  loss: number | null;
  /** Median over the steps. */
  tokensPerSecondPerGpu: number | null;
  goodput: number | null;
  spendUsd: number | null;
}

/** Results side by side, the fastest first. */
export async function compareRuns(
  descriptor: Descriptor,
  launched: readonly Launched[],
  ended: readonly StatusAnswer[],
): Promise<{ rows: ComparedRun[]; text: string }> {
  const rows: ComparedRun[] = [];
  for (const [i, { label, set, runId }] of launched.entries()) {
    const steps = assembleReport(await readSources(descriptor, runId, set, new Date())).steps ?? [];
    const { state = 'unknown', step = null, goodput = null, spendUsd = null } = ended[i] ?? {};
    rows.push({ label, runId, state, step, goodput, spendUsd, ...measured(steps) });
  }
  rows.sort((a, b) => (b.tokensPerSecondPerGpu ?? 0) - (a.tokensPerSecondPerGpu ?? 0));
  return { rows, text: comparisonText(rows) };
}

/** Last loss and median throughput of the steps that rank 0 printed. */
export function measured(steps: readonly ReportStep[]): Pick<ComparedRun, 'loss' | 'tokensPerSecondPerGpu'> {
  const speeds = steps.flatMap((s) => s.tokensPerSecondPerGpu ?? []);
  return {
    loss: steps.flatMap((s) => s.loss ?? []).at(-1) ?? null,
    tokensPerSecondPerGpu: speeds.length > 0 ? median(speeds) : null,
  };
}

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
