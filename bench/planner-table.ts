import { readFileSync } from 'node:fs';
import path from 'node:path';
import { claimMetrics } from './planner-claims';
import { lacksFacts, withFacts } from './planner-facts';
import { type Metric, memoryMetrics, speedMetrics } from './planner-metrics';
import { isMixture } from './planner-mixture-rows';
import type { Row } from './planner-rows';
import { groupBy, inScope, isCovered, isStrict, mean, median, type Scored, scoreRow } from './planner-score';
import { smddpMetrics } from './planner-smddp';

const percent = (value: number, digits = 1) => `${(100 * value).toFixed(digits)} %`;
const ape = (error: number) => Math.abs(Math.expm1(error));
const signed = (value: number) => `${value >= 0 ? '+' : ''}${percent(value)}`;

/** The accuracy table in Markdown: every target of the bench, then each source. */
export function accuracyTable(rows: readonly Row[]): string {
  const described = rows.filter(inScope).map((row) => scoreRow(row));
  const scored = described.map((s) => (lacksFacts(s.row) ? scoreRow(withFacts(s.row)) : s));
  const metrics = [
    ...speedMetrics(scored),
    ...smddpMetrics(),
    ...claimMetrics(),
    ...memoryMetrics(scored),
    ...describedMetrics(described),
  ];
  const mixtures = rows.filter((row) => isMixture(row) && row.quality !== 'D').map((row) => scoreRow(row));
  return [
    ...metricLines(metrics),
    '',
    ...peerLines(),
    '',
    ...sourceLines(scored),
    '',
    ...mixtureLines(mixtures),
    '',
    ...setAsideLines(scoreSetAside()),
    '',
  ].join('\n');
}

/** The averages over sources with every row as it stands, its batch included. */
const describedMetrics = (described: readonly Scored[]): Metric[] =>
  [...speedMetrics(described), ...memoryMetrics(described)]
    .filter((m) => m.name.includes('average over sources'))
    .map((m) => ({ ...m, name: `${m.name}, each row as it stands` }));

/** Mixtures of experts by model and GPU: the tables name each configuration for several versions of the software. */
function mixtureLines(scored: readonly Scored[]): string[] {
  const known = scored.filter((s) => s.speedError !== undefined);
  const groups = groupBy(known, (s) => `${s.row.source} | ${s.row.model.name} | ${s.row.hardware.gpu}`);
  const medians = [...groups.values()].map((group) => median(group.map((s) => s.speedError ?? 0)));
  const covered = known.filter((s) => isCovered(s)).length;
  const fits = known.filter((s) => s.prediction.fits !== 'oom').length;
  return [
    '| mixtures of experts | model | GPU | rows | median | slowest to fastest of one layout |',
    '|---|---|---|---|---|---|',
    ...[...groups].map(([name, group]) => {
      const errors = group.map((s) => s.speedError ?? 0);
      return `| ${name} | ${group.length} | ${signed(Math.expm1(median(errors)))} | ${spreadOf(group)} |`;
    }),
    `| all ${known.length} rows of ${groups.size} groups: mean error of the medians ${percent(mean(medians.map(ape)))}; the 80 % interval covers ${percent(covered / known.length, 0)}; planned to fit ${percent(fits / known.length, 0)} of what ran; ${scored.length - known.length} rows skipped | | | | | |`,
  ];
}

/** Published rows that no fit has seen, scored. */
export function scoreSetAside(): Scored[] {
  const { rows } = JSON.parse(readFileSync(path.join(__dirname, 'rows-set-aside.json'), 'utf8')) as { rows: Row[] };
  return rows.map((row) => scoreRow(row));
}

function setAsideLines(scored: readonly Scored[]): string[] {
  const summary = (name: string, group: readonly Scored[]) => {
    const error = percent(median(group.map((s) => ape(s.speedError ?? 0))));
    const covered = percent(group.filter(isCovered).length / group.length, 0);
    return `| ${group.length} ${name}: median error ${error}; the 80 % interval covers ${covered} | | | | | | |`;
  };
  return [
    '| rows set aside: no constant is fitted to them | model | GPUs | measured tokens/s per GPU | planned | error | in the 80 % interval |',
    '|---|---|---|---|---|---|---|',
    ...scored.map((s) => {
      const { row, prediction } = s;
      const gpus = `${row.hardware.num_gpus} ${row.hardware.gpu}`;
      const planned = Math.round(prediction.tokensPerSecondPerGpu ?? 0);
      const cells = [row.source, row.model.name, gpus, row.result.tokens_per_s_per_gpu, planned];
      return `| ${[...cells, signed(Math.expm1(s.speedError ?? 0)), isCovered(s) ? 'yes' : 'no'].join(' | ')} |`;
    }),
    summary(
      'dense rows',
      scored.filter((s) => !isMixture(s.row)),
    ),
    summary(
      'mixtures',
      scored.filter((s) => isMixture(s.row)),
    ),
  ];
}

/** Of rows alike in layout and batch: how many times as fast as the slowest the fastest version of the software is. */
function spreadOf(group: readonly Scored[]): string {
  const alike = groupBy(group, ({ row: { parallel: p, batch: b, hardware, precision } }) => {
    const layout = [p.strategy, hardware.num_gpus, p.ep, p.tp, p.pp, p.vpp ?? 1, p.cp ?? 1];
    return [...layout, b.micro_batch_per_gpu, b.global_batch_seqs, precision].join();
  });
  const spreads = [...alike.values()].map((rows) => {
    const speeds = rows.map((s) => s.row.result.tokens_per_s_per_gpu ?? 0);
    return Math.max(...speeds) / Math.min(...speeds);
  });
  return `x${Math.max(...spreads).toFixed(2)}`;
}

function metricLines(metrics: readonly Metric[]): string[] {
  return [
    '| figure | this planner | must | aim | met |',
    '|---|---|---|---|---|',
    ...metrics.map((m) => `| ${m.name} | ${m.value} | ${m.must} | ${m.aim} | ${m.met ? 'yes' : '**no**'} |`),
  ];
}

/** What other analytic models report of themselves: Calculon on 8 points of Korthikanti Table 5, llm-analysis on LLaMA GPU-hours. */
function peerLines(): string[] {
  return [
    '| peer | what it reports of itself |',
    '|---|---|',
    '| Calculon | step time 3.65 % mean (max 8.9 %) on 8 points of Korthikanti Table 5; weights and optimizer 8.5 %, activations 2.1 % |',
    '| llm-analysis | LLaMA GPU-hours -5.6, +9.5, -3.8, -0.7 % with a hand-set efficiency of 0.5 |',
    '| vTrain | 8.37 % on one node, 14.73 % on several, from profiled kernels |',
  ];
}

function sourceLines(scored: readonly Scored[]): string[] {
  const lines = [
    '| source | rows | median | mean error | within 20 % | memory rows | memory error |',
    '|---|---|---|---|---|---|---|',
  ];
  for (const [source, group] of groupBy(scored, (s) => s.row.source ?? '')) {
    const speed = group.filter((s) => isStrict(s.row) && s.speedError !== undefined);
    const memory = group.filter((s) => s.memoryError !== undefined);
    if (speed.length + memory.length === 0) continue;
    const errors = speed.map((s) => ape(s.speedError ?? 0));
    const bias = speed.length > 0 ? signed(Math.expm1(median(speed.map((s) => s.speedError ?? 0)))) : '';
    const near = percent(errors.filter((e) => e <= 0.2).length / Math.max(1, errors.length), 0);
    const memoryError = memory.length > 0 ? percent(mean(memory.map((s) => ape(s.memoryError ?? 0)))) : '';
    lines.push(
      `| ${source} | ${speed.length} | ${bias} | ${speed.length > 0 ? percent(mean(errors)) : ''} | ${speed.length > 0 ? near : ''} | ${memory.length || ''} | ${memoryError} |`,
    );
  }
  return lines;
}
