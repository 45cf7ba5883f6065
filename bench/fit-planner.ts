import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Constants, MEMORY_CONSTANTS } from '../lib/core/planner/constants';
import { hasRecurrence } from '../lib/core/planner/plan';
import { fitConstants, type Prior } from './least-squares';
import { withFacts } from './planner-facts';
import { isMixture } from './planner-mixture-rows';
import { TIME_PRIORS } from './planner-priors';
import { readRows, rowsFolder } from './planner-row-files';
import { layoutOfRow, predictRow, type Row } from './planner-rows';
import { groupBy, inScope, isStrict, mean, median } from './planner-score';
import { writeConstants } from './write-constants';

const NAMES = Object.keys(TIME_PRIORS) as (keyof Constants)[];
const PRIORS: readonly Prior[] = NAMES.map((n) => TIME_PRIORS[n]);

const toConstants = (values: readonly number[]): Constants =>
  Object.fromEntries(NAMES.map((n, i) => [n, values[i]])) as unknown as Constants;

const QUALITY_WEIGHT: Readonly<Record<string, number>> = { A: 1, B: 0.8, C: 0.4 };

/** A row of a large table counts less than one of a small table, so that no source dominates. */
export function weightsOf(rows: readonly Row[]): Map<Row, number> {
  const weights = new Map<Row, number>();
  for (const [, group] of groupBy(rows, (r) => r.source ?? '')) {
    for (const row of group) {
      const own = (QUALITY_WEIGHT[row.quality ?? 'C'] ?? 0.4) * (isStrict(row) ? 1 : 0.35);
      weights.set(row, own * group.length ** -0.2);
    }
  }
  return weights;
}

export function errorsOf(rows: readonly Row[], constants: Constants): number[] {
  const k = { time: constants, memory: MEMORY_CONSTANTS };
  return rows.map((row) => {
    const p = predictRow(row, k);
    const measured = row.result.tokens_per_s_per_gpu;
    return p.tokensPerSecondPerGpu && measured ? Math.log(p.tokensPerSecondPerGpu / measured) : 0;
  });
}

export function fitOn(rows: readonly Row[], iterations?: number): Constants {
  const weights = weightsOf(rows);
  const values = fitConstants(
    PRIORS,
    (at) => {
      const errors = errorsOf(rows, toConstants(at));
      return rows.map((row, i) => ({ error: errors[i] ?? 0, weight: weights.get(row) ?? 1 }));
    },
    iterations,
  );
  return toConstants(values);
}

export function report(title: string, rows: readonly Row[], errors: readonly number[]): void {
  console.log(`\n${title}`);
  const at = new Map(rows.map((row, i) => [row, errors[i] ?? 0]));
  const ape = (r: Row) => Math.abs(Math.expm1(at.get(r) ?? 0));
  const macro: number[] = [];
  const strict = rows.filter(isStrict);
  for (const [source, group] of groupBy(strict, (r) => r.source ?? '')) {
    macro.push(mean(group.map(ape)));
    const bias = 100 * median(group.map((r) => at.get(r) ?? 0));
    console.log(
      `${source.slice(0, 48).padEnd(50)}${String(group.length).padStart(4)} bias ${bias.toFixed(1).padStart(6)}  mape ${(100 * mean(group.map(ape))).toFixed(1)}`,
    );
  }
  const all = strict.map(ape);
  const loose = rows.filter((r) => !isStrict(r)).map(ape);
  console.log(
    `pooled median ${(100 * median(all)).toFixed(2)}  macro ${(100 * mean(macro)).toFixed(2)}  within 20 % ${((100 * all.filter((x) => x <= 0.2).length) / all.length).toFixed(1)}  loose median ${(100 * median(loose)).toFixed(1)}`,
  );
}

/** Rows the constants may be fitted to: free licence or facts of a paper, not out of scope, answered by the planner. */
export const fitRows = (rows: readonly Row[]) =>
  rows.filter((r) => inScope(r) && r.result.tokens_per_s_per_gpu && !predictRow(r).skipped);

/** What only rows of mixtures tell, of constants that the other rows have fitted. */
const EXPERT_NAMES: readonly (keyof Constants)[] = ['expertWidth', 'expertPasses', 'expertHostSeconds'];

/**
 * Rows of mixtures whose speed is known and planned, without those of linear recurrences, whose own time is only counted. They stand outside
 * the scope of the accuracy table's targets.
 */
export const mixtureRows = (rows: readonly Row[]) =>
  rows.filter(
    (r) =>
      isMixture(r) && r.quality !== 'D' && r.result.tokens_per_s_per_gpu && !predictRow(r).skipped && !isRecurrent(r),
  );

function isRecurrent(row: Row): boolean {
  const mapped = layoutOfRow(row);
  return typeof mapped !== 'string' && hasRecurrence(mapped.layout);
}

/** Tables name a configuration once for each version of the software: together they count as one row. */
const configurationOf = (row: Row) => `${row.source} ${row.model.name} ${row.hardware.gpu}`;

/** The constants of experts by rows of mixtures, beside constants that are held. */
export function fitExperts(time: Constants, rows: readonly Row[]): Constants {
  const groups = groupBy(rows, configurationOf);
  const at = (values: readonly number[]): Constants => ({
    ...time,
    ...Object.fromEntries(EXPERT_NAMES.map((name, i) => [name, values[i]])),
  });
  const values = fitConstants(
    EXPERT_NAMES.map((name) => TIME_PRIORS[name]),
    (candidate) => {
      const errors = errorsOf(rows, at(candidate));
      return rows.map((row, i) => ({
        error: errors[i] ?? 0,
        weight: 1 / (groups.get(configurationOf(row))?.length ?? 1),
      }));
    },
  );
  return at(values);
}

/** The mean over configurations of the median error, as the accuracy table has it; each model also by constants that never saw it. */
function reportExperts(time: Constants, rows: readonly Row[]): void {
  const shown = (errors: ReadonlyMap<Row, number>) => {
    const medians = [...groupBy(rows, configurationOf).values()].map((group) =>
      median(group.map((row) => errors.get(row) ?? 0)),
    );
    return `${(100 * mean(medians.map((error) => Math.abs(Math.expm1(error))))).toFixed(1)} %`;
  };
  const errorsBy = (constants: Constants, of: readonly Row[]): [Row, number][] =>
    errorsOf(of, constants).map((error, i) => [of[i] as Row, error]);
  const held = [...groupBy(rows, (row) => row.model.name).entries()].flatMap(([name, group]) => {
    const others = rows.filter((row) => row.model.name !== name);
    return errorsBy(fitExperts(time, others), group);
  });
  const prior = Object.fromEntries(EXPERT_NAMES.map((name) => [name, TIME_PRIORS[name].value]));
  console.log(
    `mixtures: ${shown(new Map(errorsBy({ ...time, ...prior }, rows)))} by the priors, ${shown(new Map(errorsBy(fitExperts(time, rows), rows)))} fitted, ${shown(new Map(held))} leaving models out`,
  );
}

function main(): void {
  const { values } = parseArgs({
    options: { bench: { type: 'string' }, write: { type: 'boolean' }, cv: { type: 'boolean' } },
  });
  const read = (name: string) => readRows(path.join(rowsFolder(values.bench), name), '--bench').map(withFacts);
  const published = read('published-runs.json');
  const rows = fitRows(published);
  const dense = fitOn(rows);
  const fitted = fitExperts(dense, mixtureRows(published));
  for (const n of NAMES) console.log(n.padEnd(30), fitted[n].toPrecision(4), '  prior', TIME_PRIORS[n].value);
  report('fitted on all sources', rows, errorsOf(rows, fitted));
  const check = fitRows(read('published-runs-noncommercial.json'));
  report('never fitted (non-commercial)', check, errorsOf(check, fitted));
  reportExperts(dense, mixtureRows(published));
  if (values.cv) crossValidate(rows);
  if (values.write) writeConstants(fitted);
}

/** Each source predicted by constants that never saw it. */
function crossValidate(rows: readonly Row[]): void {
  const errors = new Map<Row, number>();
  const covered: boolean[] = [];
  for (const [source, group] of groupBy(rows, (r) => r.source ?? '')) {
    const fitted = fitOn(
      rows.filter((r) => r.source !== source),
      12,
    );
    const held = errorsOf(group, fitted);
    group.forEach((row, i) => {
      errors.set(row, held[i] ?? 0);
    });
    covered.push(...group.filter(isStrict).map((row) => isCovered(row, fitted)));
  }
  report(
    'leaving whole sources out',
    rows,
    rows.map((r) => errors.get(r) ?? 0),
  );
  console.log(`80 % interval covers ${((100 * covered.filter(Boolean).length) / covered.length).toFixed(1)} %`);
}

function isCovered(row: Row, time: Constants): boolean {
  const [low, high] = predictRow(row, { time, memory: MEMORY_CONSTANTS }).interval80 ?? [0, 0];
  const measured = row.result.tokens_per_s_per_gpu ?? 0;
  return low <= measured && measured <= high;
}

if (process.argv[1]?.endsWith('fit-planner.ts')) main();
