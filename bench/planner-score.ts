import { type Prediction, predictRow, type Row } from './planner-rows';

/** One measured row and what the planner says of it. */
export interface Scored {
  row: Row;
  prediction: Prediction;
  /** ln(predicted / measured) of tokens per second and GPU. */
  speedError?: number;
  /** ln(predicted / measured) of peak memory. */
  memoryError?: number;
}

const GB_TO_GIB = 1e9 / 2 ** 30;
/** CUDA context and NCCL buffers that nvidia-smi counts and the allocator does not. */
const OUTSIDE_ALLOCATOR_GIB = 1.4;
/** What the allocator reserves beyond what tensors hold, where a source does not say. */
const RESERVED_OVER_ALLOCATED = 1.05;

/** Measured peak as the allocator's reservation in GiB; undefined where none was measured. */
export function measuredPeakGiB(row: Row): number | undefined {
  const value = row.result.peak_mem_gb;
  const kind = row.result.peak_mem_kind ?? '';
  if (!value || !row.use.includes('memory')) return undefined;
  const reservedBesideGB = /reserved (\d+(?:\.\d+)?)/.exec(kind)?.[1];
  if (reservedBesideGB) return Number(reservedBesideGB) * GB_TO_GIB;
  const gib = row.derived.peak_mem_gib ?? (/GiB|nvidia-smi/.test(kind) ? value : value * GB_TO_GIB);
  if (kind.includes('nvidia-smi')) return gib - OUTSIDE_ALLOCATOR_GIB;
  if (/allocated|active/.test(kind)) return gib * RESERVED_OVER_ALLOCATED;
  return gib;
}

/** Rows whose outcome the planner is held to. */
export const inScope = (row: Row) => !row.use.includes('out_of_scope') && row.quality !== 'D';

export function scoreRow(row: Row, prediction: Prediction = predictRow(row)): Scored {
  const tokens = row.result.tokens_per_s_per_gpu;
  const peak = measuredPeakGiB(row);
  return {
    row,
    prediction,
    speedError:
      tokens && prediction.tokensPerSecondPerGpu ? Math.log(prediction.tokensPerSecondPerGpu / tokens) : undefined,
    memoryError: peak && prediction.peakMemoryGiB ? Math.log(prediction.peakMemoryGiB / peak) : undefined,
  };
}

export const median = (values: readonly number[]) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
};
export const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

/** Strict rows: everything known but perhaps the recompute setting. */
export const isStrict = (row: Row) => row.use.includes('throughput') || row.use.includes('throughput_ac_unknown');

/** Whether what was measured is in the 80 % interval. */
export const isCovered = ({ row, prediction }: Scored) => {
  const tokens = row.result.tokens_per_s_per_gpu ?? 0;
  const [low, high] = prediction.interval80 ?? [0, 0];
  return tokens >= low && tokens <= high;
};
