import {
  type Accelerator,
  type AcceleratorName,
  accelerators,
  ACCELERATOR_NAMES as CATALOG_NAMES,
} from '../lib/core/catalog/instances/accelerated-instances';

/** An accelerator and the usual network of hosts with it, by the short names used in published measurements. */
export interface NamedAccelerator {
  accelerator: Accelerator;
  /** Network bandwidth of a host with eight accelerators, in Gb/s, when a measurement does not state it. */
  usualNetworkGbps: number;
}

/** Hosts with eight GPUs outside AWS: NVIDIA DGX A100 has 8 x 200 Gb/s, DGX H100 / H200 / B200 8 x 400, DGX B300 8 x 800. */
const USUAL_NETWORK_GBPS: Readonly<Record<string, number>> = {
  'V100-32GB': 100,
  'A100-40GB': 1600,
  'A100-80GB': 1600,
  'B300-288GB': 6400,
  'A10G-24GB': 100,
  'L4-24GB': 100,
  'L40S-48GB': 400,
};

/**
 * GPUs in published measurements that no SageMaker instance type has.
 * H100-96GB: the variant in torchtitan's benchmarks, HBM2e at 2.4 TB/s, 500 W instead of 700 W; the matmul peak is scaled by 0.9 for the
 * power cap (https://github.com/pytorch/torchtitan/blob/main/benchmarks/llama3_h100_202412_torchtitan.md, retrieved 2026-11-20).
 * A800-80GB: an A100 with NVLink at 400 GB/s (NVIDIA A800 data sheet).
 */
const OTHER: Readonly<Record<string, Accelerator>> = {
  'H100-96GB': {
    kind: 'gpu',
    model: 'NVIDIA H100 96GB (500 W)',
    architecture: 'Hopper',
    count: 8,
    memoryGiB: 95,
    bf16DenseTflops: 989 * 0.9,
    fp8DenseTflops: 1979 * 0.9,
    memoryBandwidthGBs: 2400,
    nvlinkGBs: 900,
  },
  'A800-80GB': {
    kind: 'gpu',
    model: 'NVIDIA A800 80GB',
    architecture: 'Ampere',
    count: 8,
    memoryGiB: 80,
    bf16DenseTflops: 312,
    memoryBandwidthGBs: 2039,
    nvlinkGBs: 400,
  },
};

/** Short names that `findAccelerator` accepts. */
export const ACCELERATOR_NAMES: readonly string[] = [...CATALOG_NAMES, ...Object.keys(OTHER)];

/** The accelerator with a short name such as `H100-80GB`; names such as `A100` select the largest of the family. */
export function findAccelerator(name: string): NamedAccelerator | undefined {
  const exact = lookup(name);
  if (exact) return exact;
  const family = ACCELERATOR_NAMES.filter((n) => n.startsWith(`${name.split('-')[0]}-`));
  return family.length > 0 ? lookup(family[family.length - 1] ?? '') : undefined;
}

function lookup(name: string): NamedAccelerator | undefined {
  const isCatalogued = (CATALOG_NAMES as readonly string[]).includes(name);
  const accelerator = OTHER[name] ?? (isCatalogued ? accelerators(8, name as AcceleratorName) : undefined);
  return accelerator && { accelerator, usualNetworkGbps: USUAL_NETWORK_GBPS[name] ?? 3200 };
}
