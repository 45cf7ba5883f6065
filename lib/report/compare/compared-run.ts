import { median } from '../run/median';
import type { ReportStep, RunReport } from '../run/run-report';

/** What a run came to, beside others. Throughput and loss are those that its rank 0 printed; null = it printed none. */
export interface ComparedRun {
  /** What tells it from the others. */
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

/** Last loss and median throughput of the steps that rank 0 printed. */
export function measured(steps: readonly ReportStep[]): Pick<ComparedRun, 'loss' | 'tokensPerSecondPerGpu'> {
  const speeds = steps.flatMap((s) => s.tokensPerSecondPerGpu ?? []);
  return {
    loss: steps.flatMap((s) => s.loss ?? []).at(-1) ?? null,
    tokensPerSecondPerGpu: speeds.length > 0 ? median(speeds) : null,
  };
}

/** A row of a comparison. */
export const comparedRun = (report: RunReport, label: string): ComparedRun => ({
  label,
  runId: report.runId,
  state: report.state,
  step: report.step,
  goodput: report.goodput,
  spendUsd: report.spendUsd,
  ...measured(report.steps ?? []),
});
