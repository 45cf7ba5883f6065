import { parsePath } from '../../../core/config/reading/overrides';
import { UsageError } from '../../exit';

/** One run of a comparison: the options in which it differs from the others. */
export interface MatrixCell {
  /** The label, for example `training.microBatchSize=2 distribution.parameters.shard_degree=8`. */
  label: string;
  set: string[];
}

/** More runs than this are probably a mistake. */
const MAX_RUNS = 32;

/**
 * All combinations of the values of `--matrix path=a,b,c`; a comma inside brackets or quotes belongs to its value.
 * @throws UsageError for an option that is not a path with two or more values, and for more than 32 runs
 */
export function matrixCells(options: readonly string[]): MatrixCell[] {
  const axes = options.map(axis);
  const repeated = axes.map(({ path }) => path).find((path, i, all) => all.indexOf(path) !== i);
  if (repeated) throw wrong(repeated, 'must contain each path once', 'write all its values in one --matrix');
  const sets = axes.reduce<string[][]>(
    (cells, { path, values }) => cells.flatMap((cell) => values.map((value) => [...cell, `${path}=${value}`])),
    [[]],
  );
  if (sets.length > MAX_RUNS)
    throw wrong(`${sets.length} runs`, `must give at most ${MAX_RUNS} runs`, 'use fewer values');
  return sets.map((set) => ({ label: set.join(' '), set }));
}

function axis(option: string): { path: string; values: string[] } {
  const split = option.indexOf('=');
  const path = option.slice(0, Math.max(split, 0)).trim();
  const values = splitValues(option.slice(split + 1));
  if (!parsePath(path) || values.length < 2 || values.includes(''))
    throw wrong(option, 'must be a path and two or more values', 'write --matrix training.microBatchSize=1,2,4');
  if (new Set(values).size < values.length)
    throw wrong(option, 'must contain each value once', 'remove the repetition');
  return { path, values };
}

const wrong = (got: string, must: string, fix: string) => new UsageError(`--matrix: ${must}, got ${got}; ${fix}`);

/** Splits at commas outside of brackets, braces and quotes. */
function splitValues(text: string): string[] {
  const parts = text.match(/(?:"[^"]*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^,])+|(?<=,)(?=,|$)|^(?=,)/g) ?? [];
  return parts.map((part) => part.trim());
}
