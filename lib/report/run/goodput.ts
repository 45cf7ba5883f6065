import { CAUSES, type Cause, type Ledger } from '../../core/lifecycle/ledger';
import { duration, percent } from '../page/format';
import { type Html, html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { swatch } from '../page/parts';
import { stackBar } from '../page/stack-bar';
import { color } from '../page/style';
import { table } from '../page/table';
import type { RunReport } from './run-report';

interface CauseText {
  name: string;
  color: string;
  meaning: string;
}

/** Kept work is green, the cost of failures is red, waiting is grey, and the rest is necessary overhead. */
const TEXTS: Readonly<Record<Cause, CauseText>> = {
  step: { name: 'steps that were kept', color: color('good'), meaning: 'training whose result is in a checkpoint' },
  save: { name: 'saving', color: color('c1'), meaning: 'checkpoints and the final upload' },
  eval: { name: 'evaluation', color: color('c7'), meaning: 'declared evaluation phases' },
  warmup: { name: 'warm-up', color: color('c5'), meaning: 'loading and compiling, until the first step' },
  startup: { name: 'start-up', color: color('c4'), meaning: 'download of image and data' },
  pending: { name: 'pending', color: color('wait'), meaning: 'waiting for instances' },
  queued: { name: 'queued', color: color('c8'), meaning: 'waiting in the queue' },
  gap: {
    name: 'between attempts',
    color: color('c2'),
    meaning: 'from the end of one attempt to the start of the next',
  },
  lost: { name: 'lost steps', color: color('bad'), meaning: 'steps after the last checkpoint of a failed attempt' },
  hang: { name: 'hang', color: color('c6'), meaning: 'time from the last progress of a hung attempt to its end' },
  stopped: { name: 'stopped', color: color('rule'), meaning: 'stopped on request, before it was resumed' },
};

/** Breakdown of the run's time by cause. */
export function goodputSection(report: RunReport): Section {
  const title = 'Goodput';
  const { ledger } = report;
  if (!ledger) return { id: 'goodput', title, body: unknown('The timeline was not read', report.missing.timeline) };
  const causes = (Object.keys(TEXTS) as Cause[]).filter((c) => CAUSES.includes(c) && ledger.seconds[c] > 0);
  if (causes.length === 0) return { id: 'goodput', title, body: unknown('Nothing is recorded yet') };
  return {
    id: 'goodput',
    title,
    body: html`${headline(ledger)}${bar(ledger, causes)}${ledgerTable(ledger, causes)}${restarts(ledger)}`,
  };
}

const headline = ({ goodput }: Ledger): Html | undefined =>
  goodput === null
    ? undefined
    : html`<p>${percent(goodput)} of the time since the first job was created was spent in steps that were kept.</p>`;

/** What restarts in place have cost, by phase. */
const restarts = ({ restartSeconds }: Ledger): Html | undefined =>
  restartSeconds &&
  html`<p>Restarts in place: ${Object.entries(restartSeconds)
    .map(([phase, seconds]) => `${phase} ${duration(seconds)}`)
    .join(', ')}.</p>`;

const bar = (ledger: Ledger, causes: readonly Cause[]): Html =>
  stackBar({
    title: 'Goodput ledger',
    description: causes.map((c) => `${TEXTS[c].name}: ${duration(ledger.seconds[c])}`).join('. '),
    parts: causes.map((c) => ({ name: TEXTS[c].name, value: ledger.seconds[c], color: TEXTS[c].color })),
  });

const ledgerTable = (ledger: Ledger, causes: readonly Cause[]): Html =>
  table({
    caption:
      'Every second is assigned to one cause, with the resolution of the launcher’s observations: at events and every few minutes',
    columns: [{ head: 'Cause' }, { head: 'Time', kind: 'num' }, { head: 'Share', kind: 'num' }],
    rows: causes.map((c) => [
      html`${swatch(TEXTS[c].color)}${TEXTS[c].name}<small>${TEXTS[c].meaning}</small>`,
      duration(ledger.seconds[c]),
      percent(ledger.seconds[c] / ledger.totalSeconds),
    ]),
    foot: ['all', duration(ledger.totalSeconds), ''],
  });
