import { median } from '../run/median';
import type { ReportStep, RunReport } from '../run/run-report';

/** The results of a run for a comparison. Throughput and loss are those reported by rank 0; null = not reported. */
export interface ComparedRun {
  /** Label that distinguishes it from the other runs. */
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

/** Last loss and median throughput of the steps reported by rank 0. */
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
