import { number } from '../page/format';
import { type Html, html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

/** Published measurements next to the planner's predictions, to show its error. */
export function publishedSection({ published }: PlanReport): Section {
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
