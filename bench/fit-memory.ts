import path from 'node:path';
import { parseArgs } from 'node:util';
import { CONSTANTS, type MemoryConstants } from '../lib/core/planner/constants';
import { leastGiB } from '../lib/core/planner/memory/memory';
import { planLayout } from '../lib/core/planner/plan';
import { fitConstants } from './least-squares';
import { withFacts } from './planner-facts';
import { MEMORY_PRIORS } from './planner-priors';
import { readRows, rowsFolder } from './planner-row-files';
import { layoutOfRow, type Row } from './planner-rows';
import { groupBy, inScope, mean, measuredPeakGiB, median } from './planner-score';
import { writeConstants } from './write-constants';

const NAMES = Object.keys(MEMORY_PRIORS) as (keyof MemoryConstants)[];

const toConstants = (values: readonly number[]): MemoryConstants =>
  Object.fromEntries(NAMES.map((n, i) => [n, values[i]])) as unknown as MemoryConstants;

/** A row with its measured peak, or only whether it fitted. */
interface Case {
  row: Row;
  peakGiB?: number;
  oom?: boolean;
}

export function memoryCases(rows: readonly Row[]): Case[] {
  return rows.filter(inScope).flatMap((row): Case[] => {
    const peakGiB = measuredPeakGiB(row);
    if (peakGiB) return [{ row, peakGiB }];
    const known = row.use.includes('fit') && row.result.oom !== null && typeof layoutOfRow(row) !== 'string';
    return known ? [{ row, oom: row.result.oom === true }] : [];
  });
}

/** A plan that promises too much memory costs a launch; one that promises too little only some speed. */
const TOO_LOW = 3;
const tooLowCounts = (error: number) => (error < 0 ? TOO_LOW * error : error);

/** ln(predicted / measured); for a row that only fitted or not, how far the prediction is on the wrong side. */
export function memoryErrors(cases: readonly Case[], memory: MemoryConstants): number[] {
  return cases.map((c) => {
    const mapped = layoutOfRow(c.row);
    const plan = typeof mapped === 'string' ? mapped : planLayout(mapped.layout, { time: CONSTANTS, memory });
    if (typeof plan === 'string') return 0;
    if (c.peakGiB) return Math.log(plan.memoryGiB.total / c.peakGiB);
    const side = Math.log(leastGiB(plan.memoryGiB) / plan.availableGiB);
    return c.oom ? Math.min(0, side - 0.01) : Math.max(0, side + 0.03);
  });
}

/** A run that fitted near the limit says more than its small error does. */
const LABEL_WEIGHT = 1.5;

/** Few rows have a measured peak: priors count more than in the fit of times. */
const PRIOR_UNIT = 0.06;

export function fitMemory(cases: readonly Case[]): MemoryConstants {
  const sizes = new Map([...groupBy(cases, (c) => c.row.source ?? '')].map(([s, g]) => [s, g.length]));
  const weight = (c: Case) =>
    (sizes.get(c.row.source ?? '') ?? 1) ** -0.4 *
    (c.row.quality === 'C' ? 0.5 : 1) *
    (/assumed/.test(c.row.notes ?? '') ? 0.3 : 1) *
    (c.peakGiB ? 1 : LABEL_WEIGHT);
  const values = fitConstants(
    NAMES.map((n) => MEMORY_PRIORS[n]),
    (at) => {
      const errors = memoryErrors(cases, toConstants(at));
      return cases.map((c, i) => ({
        error: c.peakGiB ? tooLowCounts(errors[i] ?? 0) : (errors[i] ?? 0),
        weight: weight(c),
      }));
    },
    40,
    PRIOR_UNIT,
  );
  return toConstants(values);
}

function report(title: string, cases: readonly Case[], memory: MemoryConstants): void {
  console.log(`\n${title}`);
  const errors = memoryErrors(cases, memory);
  const at = new Map(cases.map((c, i) => [c, errors[i] ?? 0]));
  const macro: number[] = [];
  for (const [source, group] of groupBy(cases, (c) => c.row.source ?? '')) {
    const measured = group.filter((c) => c.peakGiB);
    const fits = group.filter((c) => c.oom === false);
    const ooms = group.filter((c) => c.oom === true);
    const wrong = (list: Case[], side: number) =>
      list.filter((c) => (at.get(c) ?? 0) * side > (side > 0 ? 0.03 : 0.01)).length;
    const apes = measured.map((c) => Math.abs(Math.expm1(at.get(c) ?? 0)));
    if (measured.length > 0) macro.push(mean(apes));
    const peak =
      measured.length > 0
        ? `mape ${(100 * mean(apes)).toFixed(1)} bias ${(100 * median(measured.map((c) => at.get(c) ?? 0))).toFixed(1)}`
        : '';
    console.log(
      `${source.slice(0, 48).padEnd(50)} ${String(measured.length).padStart(3)} ${peak.padEnd(24)} false oom ${wrong(fits, 1)}/${fits.length}  missed ${wrong(ooms, -1)}/${ooms.length}`,
    );
  }
  console.log(`macro ${(100 * mean(macro)).toFixed(1)}`);
}

function main(): void {
  const { values } = parseArgs({
    options: { bench: { type: 'string' }, write: { type: 'boolean' }, cv: { type: 'boolean' } },
  });
  const read = (name: string) => readRows(path.join(rowsFolder(values.bench), name), '--bench').map(withFacts);
  const cases = memoryCases(read('published-runs.json'));
  const fitted = fitMemory(cases);
  for (const n of NAMES) console.log(n.padEnd(30), fitted[n].toPrecision(4), '  prior', MEMORY_PRIORS[n].value);
  report('fitted on all sources', cases, fitted);
  report('never fitted (non-commercial)', memoryCases(read('published-runs-noncommercial.json')), fitted);
  if (values.cv) crossValidate(cases);
  if (values.write) writeConstants(fitted);
}

/** Each source with measured peaks predicted by constants that never saw it. */
function crossValidate(cases: readonly Case[]): void {
  const apes: number[] = [];
  for (const [source, group] of groupBy(
    cases.filter((c) => c.peakGiB),
    (c) => c.row.source ?? '',
  )) {
    const errors = memoryErrors(group, fitMemory(cases.filter((c) => c.row.source !== source)));
    apes.push(mean(errors.map((e) => Math.abs(Math.expm1(e)))));
    console.log(`held out ${source.slice(0, 40).padEnd(42)} mape ${(100 * (apes.at(-1) ?? 0)).toFixed(1)}`);
  }
  console.log(`held-out macro ${(100 * mean(apes)).toFixed(1)}`);
}

if (process.argv[1]?.endsWith('fit-memory.ts')) main();
