import path from 'node:path';
import { UsageError } from '../lib/cli/exit';
import { readJson } from './command-line';
import type { Row } from './planner-rows';

/** The folder of the published rows: that of `--bench`, else of SLIPWAY_BENCH_ROWS. */
export const rowsFolder = (bench?: string): string =>
  bench ?? process.env.SLIPWAY_BENCH_ROWS ?? path.join(__dirname, '..', '..', 'shared', 'bench');

/**
 * The rows of a file, as they stand.
 * @throws UsageError for a file that cannot be read, or without rows
 */
export function readRows(file: string, option: string): Row[] {
  const { rows } = readJson(option, file) as { rows?: Row[] };
  if (Array.isArray(rows)) return rows;
  throw new UsageError(`${option}: must hold {"rows": [...]}, got ${file} without it`);
}
