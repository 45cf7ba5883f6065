import { html } from './page/html';
import { page } from './page/page';
import { adviceSection } from './plan/advice';
import { detailsSection } from './plan/details';
import { memorySection } from './plan/memory';
import type { PlanReport } from './plan/plan-report';
import { publishedSection } from './plan/published';
import { scalingSection } from './plan/scaling';
import { searchSection } from './plan/search';
import { stepTimeSection } from './plan/step-time';
import { planSummary } from './plan/summary';

/** One self-contained HTML page about a plan: what `slipway plan --html` writes. */
export function renderPlanPage(report: PlanReport): string {
  return page({
    title: `${report.name}: plan`,
    header: planSummary(report),
    sections: [
      memorySection(report),
      ...adviceSection(report),
      stepTimeSection(report),
      scalingSection(report),
      searchSection(report),
      publishedSection(report),
      detailsSection(report),
    ],
    footer: html`Written by <code>slipway plan</code>. Predictions come from an analytic model; the 80 % interval reflects its error for published runs.`,
  });
}
