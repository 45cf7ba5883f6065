// Kept by hand, from the fact sheets of docs/facts. Sources: karpenter-provider-aws instance reference 1d927085d (EC2 API, 2026-08-21);
// aws-neuron-sdk (2026-08-21); g4dn, p3, p2: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html. Retrieved 2026-11-20.
import type { Accelerator } from './accelerated-instances';

/** What is the same on every host with an accelerator. */
type Chip = Omit<Accelerator, 'count'>;

/**
 * Accelerators of SageMaker's training instance types, by a short name with the nominal memory. memoryGiB is the usable memory that EC2
 * reports (H200, B200, A10G, L4, L40S); otherwise the nominal size.
 */
const ACCELERATORS = {
  'K80-12GB': {
    kind: 'gpu',
    model: 'NVIDIA K80',
    architecture: 'Kepler',
    memoryGiB: 12,
    memoryBandwidthGBs: 240,
  },
  'V100-16GB': {
    kind: 'gpu',
    model: 'NVIDIA V100 16GB',
    architecture: 'Volta',
    memoryGiB: 16,
    fp16DenseTflops: 125,
    memoryBandwidthGBs: 900,
  },
  'V100-32GB': {
    kind: 'gpu',
    model: 'NVIDIA V100 32GB',
    architecture: 'Volta',
    memoryGiB: 32,
    fp16DenseTflops: 125,
    memoryBandwidthGBs: 900,
    nvlinkGBs: 300,
  },
  'T4-16GB': {
    kind: 'gpu',
    model: 'NVIDIA T4 16GB',
    architecture: 'Turing',
    memoryGiB: 15,
    fp16DenseTflops: 65,
    memoryBandwidthGBs: 320,
  },
  'A100-40GB': {
    kind: 'gpu',
    model: 'NVIDIA A100 40GB',
    architecture: 'Ampere',
    memoryGiB: 40,
    bf16DenseTflops: 312,
    fp16DenseTflops: 312,
    memoryBandwidthGBs: 1555,
    nvlinkGBs: 600,
  },
  'A100-80GB': {
    kind: 'gpu',
    model: 'NVIDIA A100 80GB',
    architecture: 'Ampere',
    memoryGiB: 80,
    bf16DenseTflops: 312,
    fp16DenseTflops: 312,
    memoryBandwidthGBs: 2039,
    nvlinkGBs: 600,
  },
  'H100-80GB': {
    kind: 'gpu',
    model: 'NVIDIA H100 80GB',
    architecture: 'Hopper',
    memoryGiB: 80,
    bf16DenseTflops: 989,
    fp16DenseTflops: 989,
    fp8DenseTflops: 1979,
    memoryBandwidthGBs: 3350,
    nvlinkGBs: 900,
  },
  'H200-141GB': {
    kind: 'gpu',
    model: 'NVIDIA H200 141GB',
    architecture: 'Hopper',
    memoryGiB: 141,
    bf16DenseTflops: 989,
    fp16DenseTflops: 989,
    fp8DenseTflops: 1979,
    memoryBandwidthGBs: 4800,
    nvlinkGBs: 900,
  },
  'B200-180GB': {
    kind: 'gpu',
    model: 'NVIDIA B200',
    architecture: 'Blackwell',
    memoryGiB: 179.06,
    bf16DenseTflops: 2250,
    fp16DenseTflops: 2250,
    fp8DenseTflops: 4500,
    memoryBandwidthGBs: 7700,
    nvlinkGBs: 1800,
  },
  'B300-288GB': {
    kind: 'gpu',
    model: 'NVIDIA B300 (Blackwell Ultra)',
    architecture: 'Blackwell Ultra',
    memoryGiB: 268.59,
    bf16DenseTflops: 2250,
    fp16DenseTflops: 2250,
    memoryBandwidthGBs: 7700,
    nvlinkGBs: 1800,
  },
  'GB200-186GB': {
    kind: 'gpu',
    model: 'NVIDIA GB200 (Grace Blackwell)',
    architecture: 'Blackwell',
    memoryGiB: 185,
    bf16DenseTflops: 2500,
    fp16DenseTflops: 2500,
    fp8DenseTflops: 5000,
    memoryBandwidthGBs: 8000,
    nvlinkGBs: 1800,
    ultraServerInstances: 18,
  },
  'A10G-24GB': {
    kind: 'gpu',
    model: 'NVIDIA A10G 24GB',
    architecture: 'Ampere',
    memoryGiB: 22.35,
    bf16DenseTflops: 70,
    fp16DenseTflops: 70,
    memoryBandwidthGBs: 600,
  },
  'L4-24GB': {
    kind: 'gpu',
    model: 'NVIDIA L4 24GB',
    architecture: 'Ada',
    memoryGiB: 22.35,
    memoryBandwidthGBs: 300,
  },
  'L40S-48GB': {
    kind: 'gpu',
    model: 'NVIDIA L40S 48GB',
    architecture: 'Ada',
    memoryGiB: 44.7,
    bf16DenseTflops: 362,
    fp16DenseTflops: 362,
    memoryBandwidthGBs: 864,
  },
  'RTX-PRO-6000-96GB': {
    kind: 'gpu',
    model: 'NVIDIA RTX PRO 6000 Blackwell Server 96GB',
    architecture: 'Blackwell',
    memoryGiB: 96,
    memoryBandwidthGBs: 1600,
  },
  'RTX-PRO-4500-32GB': {
    kind: 'gpu',
    model: 'NVIDIA RTX PRO 4500 Blackwell 32GB',
    architecture: 'Blackwell',
    memoryGiB: 32,
    memoryBandwidthGBs: 700,
  },
  'Trainium-32GB': {
    kind: 'neuron',
    model: 'AWS Trainium',
    memoryGiB: 32,
    bf16DenseTflops: 190,
    fp8DenseTflops: 190,
    memoryBandwidthGBs: 820,
    neuronCoresPerChip: 2,
  },
  'Trainium2-96GB': {
    kind: 'neuron',
    model: 'AWS Trainium2',
    memoryGiB: 96,
    bf16DenseTflops: 667,
    fp8DenseTflops: 1299,
    memoryBandwidthGBs: 2900,
    neuronCoresPerChip: 8,
    logicalCoresPerChip: 4,
  },
} satisfies Record<string, Chip>;

/** Short name of an accelerator, such as `H100-80GB`. */
export type AcceleratorName = keyof typeof ACCELERATORS;

/** Short names of all accelerators. */
export const ACCELERATOR_NAMES = Object.keys(ACCELERATORS) as AcceleratorName[];

/** A host's accelerators: `count` of one kind; a single GPU has no NVLink. */
export function accelerators(count: number, name: AcceleratorName): Accelerator {
  const { nvlinkGBs, ...chip }: Chip = ACCELERATORS[name];
  return { ...chip, count, ...(nvlinkGBs && count > 1 ? { nvlinkGBs } : {}) };
}
