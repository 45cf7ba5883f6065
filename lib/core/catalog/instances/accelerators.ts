// Kept by hand, from the fact sheets of docs/facts. Sources: karpenter-provider-aws instance reference 1d927085d (EC2 API, 2026-08-21);
// aws-neuron-sdk (2026-08-21); g4dn, p3, p2: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html. Retrieved 2026-11-20.
import type { Accelerator } from './accelerated-instances';

/** What is the same on every host with an accelerator. */
type Chip = Omit<Accelerator, 'count'>;

type Gpu = [architecture: string, model: string, memoryGiB: number, memoryBandwidthGBs: number];

const gpu = ([architecture, model, memoryGiB, memoryBandwidthGBs]: Gpu, more: Partial<Chip> = {}): Chip => ({
  kind: 'gpu',
  model: `NVIDIA ${model}`,
  architecture,
  memoryGiB,
  memoryBandwidthGBs,
  ...more,
});

/** Dense peak of a GPU that is as fast in fp16 as in bf16. */
const dense = (tflops: number, fp8DenseTflops?: number): Partial<Chip> => ({
  bf16DenseTflops: tflops,
  fp16DenseTflops: tflops,
  ...(fp8DenseTflops && { fp8DenseTflops }),
});

/**
 * Accelerators of SageMaker's training instance types, by a short name with the nominal memory. memoryGiB is the usable memory that EC2
 * reports (H200, B200, A10G, L4, L40S); otherwise the nominal size.
 */
const ACCELERATORS = {
  'K80-12GB': gpu(['Kepler', 'K80', 12, 240]),
  'V100-16GB': gpu(['Volta', 'V100 16GB', 16, 900], { fp16DenseTflops: 125 }),
  'V100-32GB': gpu(['Volta', 'V100 32GB', 32, 900], { fp16DenseTflops: 125, nvlinkGBs: 300 }),
  'T4-16GB': gpu(['Turing', 'T4 16GB', 15, 320], { fp16DenseTflops: 65 }),
  'A100-40GB': gpu(['Ampere', 'A100 40GB', 40, 1555], { ...dense(312), nvlinkGBs: 600 }),
  'A100-80GB': gpu(['Ampere', 'A100 80GB', 80, 2039], { ...dense(312), nvlinkGBs: 600 }),
  'H100-80GB': gpu(['Hopper', 'H100 80GB', 80, 3350], { ...dense(989, 1979), nvlinkGBs: 900 }),
  'H200-141GB': gpu(['Hopper', 'H200 141GB', 141, 4800], { ...dense(989, 1979), nvlinkGBs: 900 }),
  'B200-180GB': gpu(['Blackwell', 'B200', 179.06, 7700], { ...dense(2250, 4500), nvlinkGBs: 1800 }),
  'B300-288GB': gpu(['Blackwell Ultra', 'B300 (Blackwell Ultra)', 268.59, 7700], { ...dense(2250), nvlinkGBs: 1800 }),
  'GB200-186GB': gpu(['Blackwell', 'GB200 (Grace Blackwell)', 185, 8000], {
    ...dense(2500, 5000),
    nvlinkGBs: 1800,
    ultraServerInstances: 18,
  }),
  'A10G-24GB': gpu(['Ampere', 'A10G 24GB', 22.35, 600], dense(70)),
  'L4-24GB': gpu(['Ada', 'L4 24GB', 22.35, 300]),
  'L40S-48GB': gpu(['Ada', 'L40S 48GB', 44.7, 864], dense(362)),
  'RTX-PRO-6000-96GB': gpu(['Blackwell', 'RTX PRO 6000 Blackwell Server 96GB', 96, 1600]),
  'RTX-PRO-4500-32GB': gpu(['Blackwell', 'RTX PRO 4500 Blackwell 32GB', 32, 700]),
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
