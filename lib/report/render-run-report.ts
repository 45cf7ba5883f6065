import { lineageSections } from './lineage/section';
import { time } from './page/format';
import { html } from './page/html';
import { page } from './page/page';
import { attemptsSection } from './run/attempts';
import { checkpointsSection } from './run/checkpoints';
import { costSection } from './run/cost';
import { decisionsSection } from './run/decisions';
import { efaSection } from './run/efa';
import { expertsSections } from './run/experts';
import { failureSections } from './run/failure';
import { goodputSection } from './run/goodput';
import { gpusSections } from './run/gpus';
import { hostsSections } from './run/hosts';
import { launchSections } from './run/launch';
import { lossSection } from './run/loss';
import { quotasSection } from './run/quotas';
import type { RunReport } from './run/run-report';
import { samplesSections } from './run/samples';
import { summary } from './run/summary';
import { throughputSection } from './run/throughput';

/** One self-contained HTML page about a run. It shows only the content of the report and marks missing parts. */
export function renderRunReport(report: RunReport): string {
  return page({
    title: `${report.runId}: run report`,
    header: summary(report),
    sections: [
      failureSections,
      launchSections,
      attemptsSection,
      lossSection,
      throughputSection,
      gpusSections,
      hostsSections,
      expertsSections,
      samplesSections,
      goodputSection,
      checkpointsSection,
      costSection,
      quotasSection,
      efaSection,
      lineageSections,
      decisionsSection,
    ].flatMap((section) => section(report)),
    footer: html`Written by <code>slipway report</code> from the run’s record, its log and its buckets as of ${time(report.readAt)} UTC.`,
  });
}
