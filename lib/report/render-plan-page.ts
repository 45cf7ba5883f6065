import { duration, number } from './page/format';
import { type Html, html } from './page/html';
import { page, type Section, unknown } from './page/page';
import { word } from './page/parts';
import { color } from './page/style';
import { table } from './page/table';
import { detailsSection } from './plan/details';
import { memorySection } from './plan/memory';
import type { PlanReport } from './plan/plan-report';
import { scalingSection } from './plan/scaling';
import { searchSection } from './plan/search';
import { stepTimeSection } from './plan/step-time';
import { planSummary } from './plan/summary';

/** Published measurements next to the planner's predictions, to show its error. */
function publishedSection({ published }: PlanReport): Section {
  const title = 'Published measurements';
  if (!published || published.length === 0)
    return { id: 'published', title, body: unknown('There is no published measurement of a comparable run') };
  return {
    id: 'published',
    title,
    body: table({
      caption: 'Tokens per second per GPU, as published and as predicted',
      layout: 'cards',
      columns: [
        { head: 'Run', kind: 'long' },
        { head: 'Nodes', kind: 'num' },
        { head: 'Measured', kind: 'num' },
        { head: 'Predicted', kind: 'num' },
        { head: 'Difference', kind: 'num' },
        { head: 'Source', kind: 'long' },
      ],
      rows: published.map((p) => [
        p.name,
        number(p.nodes),
        number(p.measuredTokensPerSecondPerGpu),
        number(p.predictedTokensPerSecondPerGpu),
        difference(p.predictedTokensPerSecondPerGpu / p.measuredTokensPerSecondPerGpu - 1),
        source(p.source),
      ]),
    }),
  };
}

const difference = (share: number): string => `${share >= 0 ? '+' : '−'}${number(Math.abs(100 * share), 1)} %`;

/** Only https URLs become links: a source may come from a file. */
const source = (text: string): Html | string =>
  /^https:\/\/[^\s"]+$/.test(text) ? html`<a href="${text}" rel="noreferrer">${text}</a>` : text;

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

const TONES = { fits: color('good'), tight: color('warn'), oom: color('bad') } as const;

/** Suggested changes, each an alternative to the others; empty when the planner has no advice. */
function adviceSection({ plan }: PlanReport): Section[] {
  if (plan.advice.length === 0) return [];
  return [
    {
      id: 'advice',
      title: 'What to change first',
      body: table({
        caption: 'One alternative per row, with its prediction',
        layout: 'cards',
        columns: [
          { head: 'Change', kind: 'long' },
          { head: 'Why' },
          { head: 'Memory', kind: 'num' },
          { head: 'Step', kind: 'num' },
          { head: 'Verdict' },
        ],
        rows: plan.advice.map((a) => [
          html`<code>${a.change}</code>`,
          a.why,
          `${number(a.memoryGiB, 1)} GiB`,
          duration(a.stepSeconds),
          word(a.fits, TONES[a.fits]),
        ]),
      }),
    },
  ];
}
