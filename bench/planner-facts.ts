import type { Row } from './planner-rows';

/**
 * What the source of a row has and the row does not ("A precision that was transcribed wrongly" in docs/planner.md), or what the rest of the
 * source speaks for ("A batch that is not stated"). `--rows` answers a row as it stands; the accuracy table has both.
 */
interface Facts {
  batch?: Partial<Row['batch']>;
  precision?: string;
  parallel?: Partial<Row['parallel']>;
}

const FACTS: Readonly<Record<string, Facts>> = {
  'aws-titan-adt-compile-fp8': { batch: { micro_batch_per_gpu: 2, global_batch_seqs: 64 } },
  'lambda-405b': { precision: 'bf16_pure', parallel: { strategy: 'fsdp_full_shard flash' } },
};

export const lacksFacts = (row: Row) => row.id in FACTS;

/** The row as its source has it. */
export function withFacts(row: Row): Row {
  const { batch, parallel, precision = row.precision } = FACTS[row.id] ?? {};
  return { ...row, precision, batch: { ...row.batch, ...batch }, parallel: { ...row.parallel, ...parallel } };
}
