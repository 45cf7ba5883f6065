import { lineagePart } from './lineage/lineage';
import { time } from './page/format';
import { page } from './page/page';
import { html } from './page/parts';
import { attemptsPart } from './run/attempts';
import { checkpointsPart, costPart } from './run/cost';
import { goodputPart, throughputPart } from './run/goodput';
import { efaPart, gpusPart } from './run/gpus';
import { hostsPart } from './run/hosts';
import type { RunReport } from './run/run-report';
import { decisionsPart, failurePart, launchPart, summary } from './run/summary';
import { expertsPart, lossPart, samplesPart } from './run/training';

/** One self-contained HTML page about a run. It shows only the content of the report and marks missing parts. */
export function renderRunReport(report: RunReport): string {
  return page({
    title: `${report.runId}: run report`,
    header: summary(report),
    sections: [
      { id: 'failure', title: 'First error', body: failurePart(report) },
      { id: 'launch', title: 'Configuration', body: launchPart(report) },
      { id: 'attempts', title: 'Attempts', body: attemptsPart(report) },
      { id: 'loss', title: 'Loss', body: lossPart(report) },
      { id: 'throughput', title: 'Throughput', body: throughputPart(report) },
      { id: 'gpus', title: 'GPUs', body: gpusPart(report) },
      { id: 'hosts', title: 'Hosts', body: hostsPart(report) },
      { id: 'experts', title: 'Experts', body: expertsPart(report) },
      { id: 'samples', title: 'Samples', body: samplesPart(report) },
      { id: 'goodput', title: 'Goodput', body: goodputPart(report) },
      { id: 'checkpoints', title: 'Checkpoints', body: checkpointsPart(report) },
      { id: 'cost', title: 'Cost at list prices', body: costPart(report) },
      { id: 'efa', title: 'EFA', body: efaPart(report) },
      { id: 'lineage', title: 'Lineage', body: lineagePart(report) },
      { id: 'decisions', title: 'Decisions', body: decisionsPart(report) },
    ],
    footer: html`Written by <code>slipway report</code> from the run’s record, its log and its buckets as of ${time(report.readAt)} UTC.`,
  });
}
