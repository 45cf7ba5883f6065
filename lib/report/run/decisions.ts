import { time } from '../page/format';
import { html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { table } from '../page/table';
import type { RunReport } from './run-report';

/** All decisions of the launcher, collapsed. */
export function decisionsSection(report: RunReport): Section {
  const title = 'Decisions';
  const { timeline } = report;
  if (!timeline) return { id: 'decisions', title, body: unknown('The timeline was not read', report.missing.timeline) };
  if (timeline.length === 0) return { id: 'decisions', title, body: unknown('There are no decisions yet') };
  return {
    id: 'decisions',
    title,
    body: html`<details><summary>${timeline.length} lines: decisions and observations with their evidence</summary>${table(
      {
        caption: 'Timeline of the run; times in UTC',
        columns: [
          { head: 'Time', kind: 'fixed' },
          { head: 'What', kind: 'fixed' },
          { head: 'Description', kind: 'long' },
          { head: 'Evidence', kind: 'long' },
        ],
        rows: timeline.map((e) => [time(e.at), e.what, e.text, evidenceText(e.evidence)]),
      },
    )}</details>`,
  };
}

const evidenceText = (evidence: Record<string, unknown>) =>
  Object.keys(evidence).length === 0 ? '' : html`<code>${JSON.stringify(evidence)}</code>`;
