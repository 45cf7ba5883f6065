import { html } from '../page/html';
import type { Section } from '../page/page';
import type { RunReport } from './run-report';

/** The first error and what to do next; nothing for a run that did not fail. */
export function failureSections({ failure }: RunReport): Section[] {
  if (!failure) return [];
  const { attempt, host, lines, runbook, commands } = failure;
  const shown =
    lines.length > 0
      ? html`<p>Attempt ${attempt}${host && html`, host ${host}`}: the first error, with the lines around it.</p>
<pre>${lines.join('\n')}</pre>`
      : html`<p>Attempt ${attempt}: no line of the log looks like an error, or the log could not be read.</p>`;
  return [
    {
      id: 'failure',
      title: 'First error',
      body: html`${shown}<p>What to do: <code>${runbook}</code></p><pre>${commands.join('\n')}</pre>`,
    },
  ];
}
