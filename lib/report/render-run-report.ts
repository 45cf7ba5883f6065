import { lineageSections } from './lineage/lineage';
import { time } from './page/format';
import { page } from './page/page';
import { html } from './page/parts';
import { attemptsSection } from './run/attempts';
import { checkpointsSection, costSection } from './run/cost';
import { goodputSection, throughputSection } from './run/goodput';
import { efaSection, gpusSections } from './run/gpus';
import { hostsSections } from './run/hosts';
import type { RunReport } from './run/run-report';
import { decisionsSection, failureSections, launchSections, summary } from './run/summary';
import { expertsSections, lossSection, samplesSections } from './run/training';

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
      efaSection,
      lineageSections,
      decisionsSection,
    ].flatMap((section) => section(report)),
    footer: html`Written by <code>slipway report</code> from the run’s record, its log and its buckets as of ${time(report.readAt)} UTC.`,
  });
}
