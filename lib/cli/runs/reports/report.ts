import pc from 'picocolors';
import type { Descriptor } from '../../../core/config/descriptor';
import { plainLines, textTable } from '../../../core/config/formats/plain-text';
import { formatValue } from '../../../core/config/issue';
import { type ComparedRun, comparedRun, diffRuns, type RunDiff } from '../../../report/compare/diff-runs';
import { lineageRows } from '../../../report/lineage/lineage';
import { orDash, usd } from '../../../report/page/format';
import { assembleReport } from '../../../report/read/assemble';
import type { LabelledRun } from '../../../report/render-comparison';
import type { RunReport } from '../../../report/run/run-report';
import { modeOf } from '../../command-line';
import { findDescriptor } from '../../environment/environment';
import { EXIT, ServiceError, UsageError } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { writePage } from '../../page-file';
import { json, type Terminal } from '../../terminal';
import { tagsText } from '../list';
import { failureLines, failureOf, minute } from '../run-text';
import { stepsText } from '../status';
import { readSources } from './report-sources';

export interface ReportOptions extends CommonOptions {
  html?: string;
  diff?: boolean;
}

/** `slipway report RUN...`: shows the numbers of a run, several runs side by side; with `--html` also as a page. */
export function report(runIds: readonly string[], options: ReportOptions, terminal: Terminal): Promise<number> {
  const [only = ''] = runIds;
  if (modeOf(options, { '': ['html'], diff: [] }) === 'diff') return diff(runIds, options, terminal);
  return runIds.length > 1 ? reportSeveral(runIds, options, terminal) : reportOne(only, options, terminal);
}

/** Maximum number of runs in one comparison, and in one that is drawn: more lines would repeat colours. */
const MAX_COMPARED = 32;
const MAX_DRAWN = 8;

async function reportSeveral(runIds: readonly string[], options: ReportOptions, terminal: Terminal): Promise<number> {
  if (runIds.length > MAX_COMPARED)
    throw new UsageError(`report: must have at most ${MAX_COMPARED} runs, got ${runIds.length}; use fewer`);
  if (options.html && runIds.length > MAX_DRAWN)
    throw new UsageError(`--html: must be used with at most ${MAX_DRAWN} runs, got ${runIds.length}; use fewer`);
  const descriptor = await findDescriptor(options);
  const runs: LabelledRun[] = [];
  for (const runId of runIds) {
    const sources = await readSources(descriptor, runId, { overrides: options.set });
    runs.push({ report: assembleReport(sources), label: tagsText(sources.status) });
  }
  if (options.html) {
    const { renderComparison } = await import('../../../report/render-comparison.js');
    writePage(options.html, renderComparison(runs), terminal);
  }
  const rows = runs.map(({ report: found, label }) => comparedRun(found, label));
  terminal.out(options.json ? json({ runs: rows }) : comparisonText(rows));
  return EXIT.done;
}

async function reportOne(runId: string, options: ReportOptions, terminal: Terminal): Promise<number> {
  const descriptor = await findDescriptor(options);
  const sources = await readSources(descriptor, runId, { overrides: options.set, configuration: true });
  const failure = await failureOf(descriptor, sources.status);
  const found = assembleReport({ ...sources, failure });
  if (options.html) {
    const { renderRunReport } = await import('../../../report/render-run-report.js');
    writePage(options.html, renderRunReport(found), terminal);
  }
  terminal.out(options.json ? json(found) : reportText(plainLines(found)));
  return EXIT.done;
}

/** The report of a run as text: its state, its attempts, its cost, and what could not be read. */
function reportText(run: RunReport): string {
  const losses = (run.steps ?? []).flatMap((s) => s.loss ?? []);
  const loss = `${orDash(losses[0], (l) => l.toFixed(4))} -> ${orDash(losses[losses.length - 1], (l) => l.toFixed(4))}`;
  const cost = orDash(run.cost?.totalUsd, usd);
  return [
    `${pc.bold(run.runId)}  ${run.state}${run.reason && run.reason !== run.state ? `: ${run.reason}` : ''}`,
    `step ${orDash(run.step, String)}   committed ${orDash(run.committedStep, String)}   loss ${loss}   goodput ${orDash(run.goodput, (g) => `${(100 * g).toFixed(1)} %`)}   at list prices ${cost}`,
    '',
    textTable(
      ['attempt', 'status', 'steps', 'began', 'ended', 'USD', 'reason'],
      run.attempts.map((a) => attemptCells(a, run)),
    ),
    ...(run.failure ? ['', ...failureLines(run.failure)] : []),
    ...(run.lineage ? ['', textTable(['made from', ''], lineageRows(run.lineage))] : []),
    ...Object.entries(run.missing).map(([part, why]) => pc.yellow(`not known: ${part}: ${why}`)),
  ].join('\n');
}

function attemptCells(attempt: RunReport['attempts'][number], { cost }: RunReport): string[] {
  const found = cost?.attempts.find((c) => c.number === attempt.number);
  return [
    String(attempt.number),
    attempt.status || '-',
    stepsText(attempt).replace(/^steps /, ''),
    orDash(attempt.startedAt, minute),
    orDash(attempt.endedAt, minute),
    orDash(found?.usd, usd),
    attempt.reason,
  ];
}

/** `slipway report RUN RUN --diff`: compares the configuration and the results of two runs. */
async function diff(
  [runId = '', other = '', ...more]: readonly string[],
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  if (other === '' || other === runId || more.length > 0) {
    const got = more.length > 0 ? more.length + 2 : other === '' ? 'one' : `${runId} twice`;
    throw new UsageError(`--diff: must be used with two runs, got ${got}; name two, or leave it out`);
  }
  const descriptor = await findDescriptor(options);
  const [[first, firstWith], [second, secondWith]] = await Promise.all([
    readRun(descriptor, runId),
    readRun(descriptor, other),
  ]);
  const found = diffRuns([first, second], [firstWith, secondWith]);
  terminal.out(options.json ? json(found) : diffText(found));
  return EXIT.done;
}

async function readRun(descriptor: Descriptor, runId: string) {
  const sources = await readSources(descriptor, runId, { configuration: true });
  const { configuration } = sources;
  if (configuration) return [assembleReport(sources), configuration] as const;
  throw new ServiceError(`${runId}: must have an intent in the run table, got none; launch it again`);
}

/** Results first, then the differences that may explain them. */
function diffText({ runs, options, code, driver, image, lossAtSteps }: RunDiff): string {
  const [a, b] = runs.map(({ runId }) => runId) as [string, string];
  const versions = [
    ['code', code],
    ['driver', driver],
    ['image', image],
  ] as const;
  const changed = versions
    .filter(([, { isSame }]) => !isSame)
    .map(([name, { values }]) => [name, ...values.map((value) => value?.slice(-40) ?? '-')]);
  const differing = [...options.map(({ path, values }) => [path, ...values.map(formatValue)]), ...changed];
  const losses = lossAtSteps.map(({ step, loss: [x, y] }) => [
    String(step),
    x.toFixed(4),
    y.toFixed(4),
    (y - x).toFixed(4),
  ]);
  return [
    comparisonText(runs),
    differing.length === 0
      ? 'launched with the same options, code, driver and image'
      : textTable(['launched with', a, b], differing),
    losses.length === 0 ? 'no step was reported by both' : textTable(['loss after step', a, b, 'difference'], losses),
  ].join('\n\n');
}

export function comparisonText(rows: readonly ComparedRun[]): string {
  return textTable(
    ['run', 'state', 'step', 'loss', 'tokens/s/GPU', 'goodput', 'USD', 'with'],
    rows.map((r) => [
      r.runId,
      r.state,
      orDash(r.step, String),
      orDash(r.loss, (l) => l.toFixed(4)),
      orDash(r.tokensPerSecondPerGpu, (t) => t.toFixed(0)),
      orDash(r.goodput, (g) => `${(100 * g).toFixed(1)} %`),
      orDash(r.spendUsd, (u) => u.toFixed(2)),
      r.label,
    ]),
  );
}
