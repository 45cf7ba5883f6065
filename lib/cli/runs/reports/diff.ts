import type { Descriptor } from '../../../core/config/descriptor';
import { textTable } from '../../../core/config/formats/plain-text';
import { formatValue } from '../../../core/config/issue';
import { type ComparedRun, diffRuns, type RunDiff } from '../../../report/compare/diff-runs';
import { orDash } from '../../../report/page/format';
import { assembleReport } from '../../../report/read/assemble';
import { findDescriptor } from '../../environment/environment';
import { EXIT, ServiceError, UsageError } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { json, type Terminal } from '../../terminal';
import { readSources } from './report-sources';

/** `slipway report RUN RUN --diff`: compares the configuration and the results of two runs. */
export async function diff(
  [runId = '', other = '', ...more]: readonly string[],
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  if (other === '' || other === runId || more.length > 0) {
    const got = more.length > 0 ? more.length + 2 : other === '' ? 'one' : `${runId} twice`;
    throw new UsageError(`--diff: must be used with two runs, got ${got}; name two, or leave it out`);
  }
  const descriptor = await findDescriptor(options);
  const now = new Date();
  const [[first, firstWith], [second, secondWith]] = await Promise.all([
    readRun(descriptor, runId, now),
    readRun(descriptor, other, now),
  ]);
  const found = diffRuns([first, second], [firstWith, secondWith]);
  terminal.out(options.json ? json(found) : diffText(found));
  return EXIT.done;
}

async function readRun(descriptor: Descriptor, runId: string, now: Date) {
  const sources = await readSources(descriptor, runId, now, { configuration: true });
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
