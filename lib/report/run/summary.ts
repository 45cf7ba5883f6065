import { stringify } from 'yaml';
import { duration, number, percent, precise, time, UNKNOWN, usd } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, type Tile, table, tiles, word } from '../page/parts';
import { color } from '../page/style';
import type { RunReport } from './run-report';

const TONES: Readonly<Record<string, string>> = {
  completed: color('good'),
  failed: color('bad'),
  stopped: color('warn'),
};

export function summary(report: RunReport): Html {
  const where = [report.environment, report.team, report.region].filter((part) => part !== '').join(' · ');
  return html`<p class="sub">Slipway run report</p>
<h1>${report.runId}</h1>
<p class="sub">${where} · read ${time(report.readAt)} UTC</p>
<p>${word(report.state, TONES[report.state] ?? color('c1'))}${report.reason !== report.state && report.reason && html` – ${report.reason}`}</p>
${tiles(summaryTiles(report))}`;
}

function summaryTiles(report: RunReport): Tile[] {
  const failed = report.attempts.filter(({ status }) => status === 'Failed').length;
  return [
    { name: 'Step', value: number(report.step), note: html`committed: ${number(report.committedStep)}` },
    lossTile(report),
    {
      name: 'Attempts',
      value: number(report.attempts.length),
      note: failed === 0 ? 'none failed' : `${failed} failed`,
    },
    { name: 'Goodput', value: percent(report.goodput), note: 'kept steps as a share of the time since the first job' },
    { name: 'Time', value: duration(elapsedSeconds(report)), note: 'first decision to the end' },
    costTile(report),
  ];
}

function lossTile({ steps }: RunReport): Tile {
  const losses = steps?.flatMap(({ loss }) => loss ?? []) ?? [];
  const note = losses.length === 0 ? 'not reported' : `from ${precise(losses[0])}`;
  return { name: 'Loss', value: precise(losses.at(-1)), note };
}

function costTile({ cost, spendUsd }: RunReport): Tile {
  const note = spendUsd === null ? undefined : html`recorded: ${usd(spendUsd)}`;
  return { name: 'At list prices', value: cost ? usd(cost.totalUsd) : UNKNOWN, note };
}

/** Time from the first event of the run to the end of the last attempt, or to the time of the report. */
function elapsedSeconds({ attempts, timeline, readAt }: RunReport): number | null {
  const from = timeline?.[0]?.at ?? attempts[0]?.intendedAt ?? attempts[0]?.startedAt;
  if (!from) return null;
  return (Date.parse(attempts.at(-1)?.endedAt ?? readAt) - Date.parse(from)) / 1000;
}

/** Where the values lie that people ask for first. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  Model: ['model', 'preset'],
  'Sequence length': ['training', 'sequenceLength'],
  'Micro-batch size': ['training', 'microBatchSize'],
  'Global batch size': ['training', 'globalBatchSize'],
  Precision: ['training', 'precision'],
  'Learning rate': ['code', 'arguments', 'learning-rate'],
  'Instance type': ['compute', 'instanceType'],
  Instances: ['compute', 'instanceCount'],
  Library: ['distribution', 'library'],
};

/** What was launched; undefined when the launcher does not say. */
export function launchPart({ launch }: RunReport): Html | undefined {
  if (!launch) return undefined;
  const { note, tags, spec } = launch;
  const rows = [
    ...(note ? [['Note', note]] : []),
    ...Object.entries(FIRST).flatMap(([name, path]) => {
      const value = path.reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], spec);
      return typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [];
    }),
    ...Object.entries(tags).map(([name, value]) => [`Tag ${name}`, value]),
  ];
  return html`${table({
    caption: 'What was launched',
    layout: 'slim',
    columns: [
      { head: 'Option', kind: 'fixed' },
      { head: 'Value', kind: 'long' },
    ],
    rows,
  })}<details><summary>The run file with its overrides and defaults</summary><pre>${stringify(spec, { lineWidth: 0 })}</pre></details>`;
}

/** All decisions of the launcher, collapsed. */
export function decisionsPart({ timeline, missing }: RunReport): Html {
  if (!timeline) return unknown('The timeline was not read', missing.timeline);
  if (timeline.length === 0) return unknown('There are no decisions yet');
  return html`<details><summary>${timeline.length} lines: decisions and observations with their evidence</summary>${itemTable(
    {
      caption: 'Timeline of the run; times in UTC',
      items: timeline,
      columns: [
        { head: 'Time', kind: 'fixed', cell: (e) => time(e.at) },
        { head: 'What', kind: 'fixed', cell: (e) => e.what },
        { head: 'Description', kind: 'long', cell: (e) => e.text },
        { head: 'Evidence', kind: 'long', cell: (e) => evidenceText(e.evidence) },
      ],
    },
  )}</details>`;
}

const evidenceText = (evidence: Record<string, unknown>) =>
  Object.keys(evidence).length === 0 ? '' : html`<code>${JSON.stringify(evidence)}</code>`;

/** The first error and what to do next; undefined for a run that did not fail. */
export function failurePart({ failure }: RunReport): Html | undefined {
  if (!failure) return undefined;
  const { attempt, host, lines, runbook, commands } = failure;
  const shown =
    lines.length > 0
      ? html`<p>Attempt ${attempt}${host && html`, host ${host}`}: the first error, with the lines around it.</p>
<pre>${lines.join('\n')}</pre>`
      : html`<p>Attempt ${attempt}: no line of the log looks like an error, or the log could not be read.</p>`;
  return html`${shown}<p>What to do: <code>${runbook}</code></p><pre>${commands.join('\n')}</pre>`;
}
