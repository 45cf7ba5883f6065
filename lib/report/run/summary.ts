import { duration, number, percent, precise, time, UNKNOWN, usd } from '../page/format';
import { type Html, html } from '../page/html';
import { type Tile, tiles, word } from '../page/parts';
import { color } from '../page/style';
import type { RunReport } from './run-report';

const TONES: Readonly<Record<string, string>> = {
  completed: color('good'),
  failed: color('bad'),
  stopped: color('warn'),
};

/** Name, state and key figures of the run. */
export function summary(report: RunReport): Html {
  const where = [report.environment, report.team, report.region].filter((part) => part !== '').join(' · ');
  return html`<p class="sub">Slipway run report</p>
<h1>${report.runId}</h1>
<p class="sub">${where} · read ${time(report.readAt)} UTC</p>
<p>${word(report.state, TONES[report.state] ?? color('c1'))}${report.reason !== report.state && report.reason && html` – ${report.reason}`}</p>
${tiles(summaryTiles(report))}`;
}

function summaryTiles(report: RunReport): Tile[] {
  return [
    { name: 'Step', value: number(report.step), note: html`committed: ${number(report.committedStep)}` },
    lossTile(report),
    { name: 'Attempts', value: number(report.attempts.length), note: failedNote(report) },
    { name: 'Goodput', value: percent(report.goodput), note: 'kept steps as a share of the time since the first job' },
    { name: 'Time', value: duration(elapsedSeconds(report)), note: 'first decision to the end' },
    costTile(report),
  ];
}

function lossTile({ steps }: RunReport): Tile {
  const losses = steps?.flatMap((s) => (s.loss === undefined ? [] : [s.loss])) ?? [];
  const [first, last] = [losses[0], losses[losses.length - 1]];
  return {
    name: 'Loss',
    value: precise(last),
    note: first === undefined ? 'not reported' : html`from ${precise(first)}`,
  };
}

function failedNote({ attempts }: RunReport): string {
  const failed = attempts.filter((a) => a.status === 'Failed').length;
  return failed === 0 ? 'none failed' : `${failed} failed`;
}

function costTile({ cost, spendUsd }: RunReport): Tile {
  const note = spendUsd === null ? undefined : html`recorded: ${usd(spendUsd)}`;
  return { name: 'At list prices', value: cost ? usd(cost.totalUsd) : UNKNOWN, note };
}

/** Time from the first event of the run to the end of the last attempt, or to the time of the report. */
function elapsedSeconds({ attempts, timeline, readAt }: RunReport): number | null {
  const from = timeline?.[0]?.at ?? attempts[0]?.intendedAt ?? attempts[0]?.startedAt;
  if (!from) return null;
  const last = attempts[attempts.length - 1];
  return (Date.parse(last?.endedAt ?? readAt) - Date.parse(from)) / 1000;
}
