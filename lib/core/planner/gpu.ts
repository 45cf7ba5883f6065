import { RING_SHARE_OF_NVLINK } from '../catalog/instances/accelerated-instances';
import type { Accelerator } from '../catalog/instances/instances';
import type { Constants } from './constants';

/**
 * Share of the dense peak that the best large matrix product reaches: A100 271 of 312, H100 / H200 794 of 989, B200 1745 of 2250 TFLOPS;
 * fp8 H100 1403 of 1979, B200 3433 of 4500 (https://github.com/stas00/ml-engineering, accelerator benchmarks, retrieved 2026-11-20).
 */
const CEILING: Readonly<Record<string, { bf16: number; fp8: number }>> = {
  Ampere: { bf16: 0.87, fp8: 0.7 },
  Hopper: { bf16: 0.8, fp8: 0.71 },
  Blackwell: { bf16: 0.78, fp8: 0.76 },
};
const OTHER_CEILING = { bf16: 0.8, fp8: 0.7 };

/** GPUs connected by PCIe 4.0 x16 without NVLink reach about 20 GB/s in a ring. */
const PCIE_RING_BYTES = 20e9;

/** Speeds of `accelerator` with the fitted efficiencies; undefined when its peak is not known. */
export function gpuOf(accelerator: Accelerator, k: Constants) {
  const peak = (accelerator.bf16DenseTflops ?? accelerator.fp16DenseTflops ?? 0) * 1e12;
  if (peak === 0) return undefined;
  // `Blackwell Ultra` counts as Blackwell.
  const architecture = (accelerator.architecture ?? '').split(' ')[0] ?? '';
  const ceiling = CEILING[architecture] ?? OTHER_CEILING;
  const matmul = peak * ceiling.bf16 * (architecture === 'Blackwell' ? k.blackwell : 1);
  const hopperOrLater = architecture === 'Hopper' || architecture === 'Blackwell';
  // If the catalog has no fp8 figure, fp8 counts as twice the rate of bf16 from Hopper on.
  const fp8Peak = accelerator.fp8DenseTflops ? accelerator.fp8DenseTflops * 1e12 : hopperOrLater ? 2 * peak : 0;
  const attention = matmul * (hopperOrLater ? k.flashHopper : k.flashAmpere);
  return {
    /** Dense peak on which the utilisation is based. */
    peakFlops: peak,
    /** Rate of large matrix products in bf16 / fp16, and in fp8. */
    matmulFlops: matmul * (hopperOrLater ? k.gemmHopper : k.gemmAmpere),
    fp8Flops:
      fp8Peak > 0
        ? fp8Peak * ceiling.fp8 * k.gemmFp8 * (architecture === 'Blackwell' ? k.blackwell : 1)
        : matmul * k.gemmAmpere,
    /** Rate of attention kernels, relative to the same ceiling. */
    attentionFlops: attention,
    tunedAttentionFlops: hopperOrLater ? attention * k.flashTuned : attention,
    memoryBytesPerSecond: (accelerator.memoryBandwidthGBs ?? 600) * 1e9 * k.memoryEfficiency,
    memoryGiB: accelerator.memoryGiB,
    /** Rate at which one GPU receives in a ring inside the node. */
    linkBytesPerSecond: accelerator.nvlinkGBs ? accelerator.nvlinkGBs * 1e9 * RING_SHARE_OF_NVLINK : PCIE_RING_BYTES,
    // PCIe 4.0 x16 up to Ampere, PCIe 5.0 x16 later; copies reach about 80 % of the line rate.
    hostBytesPerSecond: hopperOrLater ? 50e9 : 25e9,
  };
}

/** Speeds of one GPU, in SI units. */
export type Gpu = NonNullable<ReturnType<typeof gpuOf>>;
