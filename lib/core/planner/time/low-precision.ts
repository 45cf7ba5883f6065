import type { LayoutInput, PlanPrecision } from '../layout';

/** Cost of matrix products in 8 and 4 bit relative to tensorwise float8, for which measurements exist. */
interface LowPrecision {
  /** Relative rate of the products. */
  rate: number;
  /** Relative number of bytes that are moved by casting the operands. */
  cast: number;
  /** Bytes per element, averaged over a 16-bit result and its two operands. */
  bytes: number;
  /** Additional width of the 80 % interval, in ln(tokens per second), because no published run with this precision has been scored. */
  unsure: number;
}

/**
 * Casting in blocks of 32 reads 16 bit and writes 8 bit and a scale, once per dimension, at 5.5 and 3.9 TB/s on B200; one scale per tensor
 * reads twice and writes once (https://github.com/pytorch/ao/blob/main/torchao/prototype/mx_formats/README.md, 2026-11-23).
 */
const BLOCK_CAST = (3.03 + (3.03 * 5.5) / 3.9) / 5;

/**
 * Recipes of torchao and Transformer Engine. Scales per row are cast along both dimensions, reading twice each time, and the CUTLASS kernel
 * for them is slower than cuBLAS: for Llama 3 8B on 8 B200, rowwise float8 gains 4.0 %, MXFP8 20.0 % and tensorwise 25.4 % over bf16 (the
 * same page). FP4 products run at twice the rate of 8 bit (https://www.nvidia.com/en-us/data-center/hgx/: 9 and 4.5 dense PFLOPS of a
 * B200), and the cast of NVFP4 adds a Hadamard transform (arXiv:2509.25149). Blocks of 128 (DeepSeek-V3) are cast like those of 32.
 */
const RECIPES: Readonly<Partial<Record<PlanPrecision, LowPrecision>>> = {
  fp8: { rate: 1, cast: 1, bytes: 1.5, unsure: 0 },
  'fp8-rowwise': { rate: 0.75, cast: 2, bytes: 1.5, unsure: 0.1 },
  'fp8-blockwise': { rate: 1, cast: BLOCK_CAST, bytes: 1.5, unsure: 0.15 },
  mxfp8: { rate: 1, cast: BLOCK_CAST, bytes: 1.5, unsure: 0.1 },
  nvfp4: { rate: 2, cast: BLOCK_CAST, bytes: 1.25, unsure: 0.2 },
};

/** The recipe of a layout with products in 8 or 4 bit. */
export const lowPrecisionOf = (l: Pick<LayoutInput, 'precision'>): LowPrecision | undefined => RECIPES[l.precision];
