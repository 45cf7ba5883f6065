import { duration, time } from './page/format';
import { page, type Section } from './page/page';
import { type Html, html, itemTable, tiles, word } from './page/parts';
import { color } from './page/style';

const TONES = { holds: color('good'), differs: color('bad'), unknown: color('warn') } as const;
const TITLES = {
  differs: 'What differs',
  unknown: 'What could not be determined',
  holds: 'What holds',
} as const;
const ORDER = ['differs', 'unknown', 'holds'] as const;

const count = (report: VerifyReport, verdict: VerifyRow['verdict']) =>
  report.rows.filter((row) => row.verdict === verdict).length;

function header(report: VerifyReport): Html {
  const { environment, region, account, level, startedAt, embedded } = report;
  return html`<p class="sub">Slipway verify</p>
<h1>${environment} in ${region}</h1>
<p class="sub">Account ${account} · level ${level} · ${time(startedAt)} UTC</p>
${embedded && html`<p>${word('Checked against the AWS emulator', color('warn'))} This page says nothing about AWS itself.</p>`}
${tiles([
  { name: 'Hold', value: `${count(report, 'holds')}`, note: `of ${report.rows.length} assumptions` },
  { name: 'Differ', value: `${count(report, 'differs')}` },
  { name: 'Unknown', value: `${count(report, 'unknown')}` },
  { name: 'Cost', value: `$${report.costUsd.toFixed(2)}`, note: 'at most' },
])}`;
}

/** Text whose `backticks` mark code. */
const prose = (text: string): Html =>
  html`${text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`;

const assumption = ({ verdict, claim, assumption: id }: VerifyRow): Html =>
  html`<span>${word(verdict, TONES[verdict])} ${prose(claim)}<br><code>${id}</code></span>`;

function rowsTable(rows: readonly VerifyRow[], verdict: VerifyRow['verdict']): Html {
  const consequence = { head: 'Consequence', kind: 'long' as const, cell: (row: VerifyRow) => prose(row.ifWrong) };
  return itemTable({
    caption: `${TITLES[verdict]}, by level`,
    layout: 'cards',
    items: rows,
    columns: [
      { head: 'Assumption', cell: assumption },
      { head: 'Level', kind: 'fixed', cell: (row) => row.level },
      { head: 'Expected', kind: 'long', cell: (row) => prose(row.expected) },
      { head: 'Seen', kind: 'long', cell: (row) => prose(row.seen) },
      ...(verdict === 'differs' ? [consequence] : []),
      { head: 'Time', kind: 'num', cell: (row) => duration(row.seconds) },
    ],
  });
}

function sections(report: VerifyReport): Section[] {
  const byVerdict = ORDER.flatMap((verdict) => {
    const rows = report.rows.filter((row) => row.verdict === verdict);
    return rows.length === 0 ? [] : [{ id: verdict, title: TITLES[verdict], body: rowsTable(rows, verdict) }];
  });
  if (report.left.length === 0) return byVerdict;
  const list = html`<ul>${report.left.map((line) => html`<li>${line}</li>`)}</ul>`;
  return [{ id: 'left', title: 'What is left in the account', body: list }, ...byVerdict];
}

/** One self-contained HTML page about the results of `slipway verify`, written next to its record. */
export function renderVerifyPage(report: VerifyReport): string {
  return page({
    title: `${report.environment}: verify`,
    header: header(report),
    sections: sections(report),
    footer: html`Written by <code>slipway verify</code>. Each assumption is explained in docs/assumptions.md.`,
  });
}

/** One assumption and its result in an account. */
interface VerifyRow {
  readonly level: string;
  /** Anchor in docs/assumptions.md. */
  readonly assumption: string;
  readonly claim: string;
  readonly verdict: 'holds' | 'differs' | 'unknown';
  readonly expected: string;
  readonly seen: string;
  readonly ifWrong: string;
  readonly seconds: number;
}

export interface VerifyReport {
  readonly environment: string;
  readonly region: string;
  /** `...` and the last four digits. */
  readonly account: string;
  readonly level: string;
  /** Whether the endpoints were those of the AWS emulator or another substitute for AWS. */
  readonly embedded: boolean;
  readonly startedAt: string;
  readonly costUsd: number;
  readonly rows: readonly VerifyRow[];
  /** Descriptions of resources that could not be cleaned up. */
  readonly left: readonly string[];
}
