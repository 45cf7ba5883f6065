import type { Row } from './planner-rows';

/**
 * Rows whose source does not state the batch, with the batch that the rest of the source and the library's own table speak for
 * (docs/planner.md, "A batch that is not stated"). `--rows` answers a row as it stands; the accuracy table has both.
 */
const BATCHES: Readonly<Record<string, Partial<Row['batch']>>> = {
  'aws-titan-adt-compile-fp8': { micro_batch_per_gpu: 2, global_batch_seqs: 64 },
};

export const isBatchUnstated = (row: Row) => row.id in BATCHES;

/** The row as its evidence has it. */
export const withLikelyBatch = (row: Row): Row => ({ ...row, batch: { ...row.batch, ...BATCHES[row.id] } });
