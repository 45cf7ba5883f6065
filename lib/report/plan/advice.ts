import { duration, number } from '../page/format';
import { html } from '../page/html';
import type { Section } from '../page/page';
import { word } from '../page/parts';
import { color } from '../page/style';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

const TONES = { fits: color('good'), tight: color('warn'), oom: color('bad') } as const;

/** Suggested changes, each an alternative to the others; empty when the planner has no advice. */
export function adviceSection({ plan }: PlanReport): Section[] {
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
