// Kept by hand, from the fact sheets of docs/facts. Sources: karpenter-provider-aws instance reference 1d927085d (EC2 API, 2026-08-21);
// aws-neuron-sdk (2026-08-21); g4dn, p3, p2: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html. Retrieved 2026-11-20.

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

// Kept by hand, from the fact sheets of docs/facts. Sources: karpenter-provider-aws instance reference 1d927085d (EC2 API, 2026-08-21);
// @aws-sdk/client-sagemaker 3.1142.0 (TrainingInstanceType, ReservedCapacityInstanceType); aws-ofi-nccl platform-aws.cpp 2daf7d30;
// g4dn, p3, p2: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html. Retrieved 2026-11-20.

/**
 * Bus bandwidth of an all-reduce in a ring over NVLink, as a share of the sum of both directions: 235 of 600 (A100), 361 of 900 (H200), 690
 * of 1800 (B200). A developer of NCCL states 370 of 900 for H100, and 480 with NVLink SHARP
 * (https://github.com/NVIDIA/nccl-tests/issues/212, retrieved 2026-11-26).
 */
export const RING_SHARE_OF_NVLINK = 0.4;

/** The accelerators of one instance. */
export interface Accelerator {
  kind: 'gpu' | 'neuron';
  model: string;
  architecture?: string;
  /** Number of GPUs or Neuron chips per instance. */
  count: number;
  /** Usable memory of one accelerator. */
  memoryGiB: number;
  /** Dense peak of one accelerator (without sparsity). */
  bf16DenseTflops?: number;
  fp16DenseTflops?: number;
  fp8DenseTflops?: number;
  memoryBandwidthGBs?: number;
  /** Bidirectional NVLink bandwidth of one GPU; absent = PCIe or a single GPU. */
  nvlinkGBs?: number;
  /** Number of instances in an UltraServer, whose GPUs share one NVLink domain; absent = NVLink only connects GPUs within an instance. */
  ultraServerInstances?: number;
  neuronCoresPerChip?: number;
  /**
   * Logical NeuronCores per chip on types where the runtime combines physical cores: pairs on Trainium2, unless NEURON_LOGICAL_NC_CONFIG is
   * 1. Source: aws-neuron-sdk logical-neuroncore-config.rst at 732f514f, retrieved 2026-11-23.
   */
  logicalCoresPerChip?: number;
}

/** Published data of an instance type: accelerators, memory in GiB, network in Gbit/s, EFA interfaces, local storage. */
export interface InstanceFacts {
  vcpus: number;
  memoryGiB: number;
  /**
   * Instance store available to the job; 0 = EBS only. Types with instance store have no EBS volume, and the API rejects VolumeKmsKeyId for
   * them.
   */
  localNvmeGB: number;
  efaInterfaces: number;
  networkGbps?: number;
  /** Whether aws-ofi-nccl expects GPUDirect RDMA. */
  gpuDirectRdma: boolean;
  /** Whether training plans are available for it. */
  trainingPlan: boolean;
  accelerator?: Accelerator;
}

/** The columns of the table; the last ones are what is true of the type. */
type Row = readonly [
  vcpus: number,
  memoryGiB: number,
  localNvmeGB: number,
  efaInterfaces: number,
  networkGbps: number,
  count: number,
  accelerator: AcceleratorName,
  ...facts: ('gpuDirectRdma' | 'trainingPlan')[],
];

const ROWS: Readonly<Record<string, Row>> = {
  'ml.p3dn.24xlarge': [96, 768, 1800, 1, 100, 8, 'V100-32GB'],
  'ml.p4d.24xlarge': [96, 1152, 8000, 4, 400, 8, 'A100-40GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p4de.24xlarge': [96, 1152, 8000, 4, 400, 8, 'A100-80GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p5.4xlarge': [16, 256, 3800, 1, 100, 1, 'H100-80GB', 'trainingPlan'],
  'ml.p5.48xlarge': [192, 2048, 30400, 32, 3200, 8, 'H100-80GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p5e.48xlarge': [192, 2048, 30400, 32, 3200, 8, 'H200-141GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p5en.48xlarge': [192, 2048, 30400, 16, 3200, 8, 'H200-141GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p6-b200.48xlarge': [192, 2048, 30400, 8, 3200, 8, 'B200-180GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p6-b300.48xlarge': [192, 4096, 30400, 16, 6400, 8, 'B300-288GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.g5.xlarge': [4, 16, 250, 0, 2.5, 1, 'A10G-24GB'],
  'ml.g5.2xlarge': [8, 32, 450, 0, 5, 1, 'A10G-24GB'],
  'ml.g5.4xlarge': [16, 64, 600, 0, 10, 1, 'A10G-24GB'],
  'ml.g5.8xlarge': [32, 128, 900, 1, 25, 1, 'A10G-24GB'],
  'ml.g5.12xlarge': [48, 192, 3800, 1, 40, 4, 'A10G-24GB'],
  'ml.g5.16xlarge': [64, 256, 1900, 1, 25, 1, 'A10G-24GB'],
  'ml.g5.24xlarge': [96, 384, 3800, 1, 50, 4, 'A10G-24GB'],
  'ml.g5.48xlarge': [192, 768, 7600, 1, 100, 8, 'A10G-24GB'],
  'ml.g6.xlarge': [4, 16, 250, 0, 2.5, 1, 'L4-24GB'],
  'ml.g6.2xlarge': [8, 32, 450, 0, 5, 1, 'L4-24GB'],
  'ml.g6.4xlarge': [16, 64, 600, 0, 10, 1, 'L4-24GB'],
  'ml.g6.8xlarge': [32, 128, 900, 1, 25, 1, 'L4-24GB'],
  'ml.g6.12xlarge': [48, 192, 3760, 1, 40, 4, 'L4-24GB'],
  'ml.g6.16xlarge': [64, 256, 1880, 1, 25, 1, 'L4-24GB'],
  'ml.g6.24xlarge': [96, 384, 3760, 1, 50, 4, 'L4-24GB'],
  'ml.g6.48xlarge': [192, 768, 7520, 1, 100, 8, 'L4-24GB'],
  'ml.g6e.xlarge': [4, 32, 250, 0, 2.5, 1, 'L40S-48GB'],
  'ml.g6e.2xlarge': [8, 64, 450, 0, 5, 1, 'L40S-48GB'],
  'ml.g6e.4xlarge': [16, 128, 600, 0, 20, 1, 'L40S-48GB'],
  'ml.g6e.8xlarge': [32, 256, 900, 1, 25, 1, 'L40S-48GB'],
  'ml.g6e.12xlarge': [48, 384, 3800, 1, 100, 4, 'L40S-48GB'],
  'ml.g6e.16xlarge': [64, 512, 1900, 1, 35, 1, 'L40S-48GB'],
  'ml.g6e.24xlarge': [96, 768, 3800, 2, 200, 4, 'L40S-48GB'],
  'ml.g6e.48xlarge': [192, 1536, 7600, 4, 400, 8, 'L40S-48GB'],
  'ml.g7e.2xlarge': [8, 64, 1900, 0, 50, 1, 'RTX-PRO-6000-96GB'],
  'ml.g7e.4xlarge': [16, 128, 1900, 0, 50, 1, 'RTX-PRO-6000-96GB'],
  'ml.g7e.8xlarge': [32, 256, 1900, 1, 100, 1, 'RTX-PRO-6000-96GB'],
  'ml.g7e.12xlarge': [48, 512, 3800, 1, 400, 2, 'RTX-PRO-6000-96GB', 'gpuDirectRdma'],
  'ml.g7e.24xlarge': [96, 1024, 7600, 2, 800, 4, 'RTX-PRO-6000-96GB', 'gpuDirectRdma'],
  'ml.g7e.48xlarge': [192, 2048, 15200, 4, 1600, 8, 'RTX-PRO-6000-96GB', 'gpuDirectRdma'],
  'ml.g7.2xlarge': [8, 32, 440, 0, 60, 1, 'RTX-PRO-4500-32GB'],
  'ml.g7.4xlarge': [16, 64, 875, 0, 60, 1, 'RTX-PRO-4500-32GB'],
  'ml.g7.8xlarge': [32, 128, 930, 1, 80, 1, 'RTX-PRO-4500-32GB'],
  'ml.g7.12xlarge': [48, 192, 1900, 1, 175, 2, 'RTX-PRO-4500-32GB'],
  'ml.g7.24xlarge': [96, 384, 3800, 1, 350, 4, 'RTX-PRO-4500-32GB'],
  'ml.g7.48xlarge': [192, 768, 7600, 2, 700, 8, 'RTX-PRO-4500-32GB'],
  'ml.trn1.2xlarge': [8, 32, 474, 0, 3.125, 1, 'Trainium-32GB'],
  'ml.trn1.32xlarge': [128, 512, 7600, 8, 800, 16, 'Trainium-32GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.trn1n.32xlarge': [128, 512, 7600, 16, 1600, 16, 'Trainium-32GB', 'gpuDirectRdma'],
  'ml.trn2.48xlarge': [192, 2048, 7600, 16, 3200, 16, 'Trainium2-96GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.p6e-gb200.36xlarge': [144, 960, 0, 17, 1600, 4, 'GB200-186GB', 'gpuDirectRdma', 'trainingPlan'],
  'ml.g4dn.xlarge': [4, 16, 125, 0, 5, 1, 'T4-16GB'],
  'ml.g4dn.2xlarge': [8, 32, 225, 0, 10, 1, 'T4-16GB'],
  'ml.g4dn.4xlarge': [16, 64, 225, 0, 20, 1, 'T4-16GB'],
  'ml.g4dn.8xlarge': [32, 128, 900, 1, 50, 1, 'T4-16GB'],
  'ml.g4dn.12xlarge': [48, 192, 900, 1, 50, 4, 'T4-16GB'],
  'ml.g4dn.16xlarge': [64, 256, 900, 1, 50, 1, 'T4-16GB'],
  'ml.p3.2xlarge': [8, 61, 0, 0, 10, 1, 'V100-16GB'],
  'ml.p3.8xlarge': [32, 244, 0, 0, 10, 4, 'V100-16GB'],
  'ml.p3.16xlarge': [64, 488, 0, 0, 25, 8, 'V100-16GB'],
  'ml.p2.xlarge': [4, 61, 0, 0, 1.25, 1, 'K80-12GB'],
  'ml.p2.8xlarge': [32, 488, 0, 0, 10, 8, 'K80-12GB'],
  'ml.p2.16xlarge': [64, 732, 0, 0, 25, 16, 'K80-12GB'],
};

function instanceFacts(row: Row): InstanceFacts {
  const [vcpus, memoryGiB, localNvmeGB, efaInterfaces, networkGbps, count, name, ...facts] = row;
  return {
    vcpus,
    memoryGiB,
    localNvmeGB,
    efaInterfaces,
    networkGbps,
    gpuDirectRdma: facts.includes('gpuDirectRdma'),
    trainingPlan: facts.includes('trainingPlan'),
    accelerator: accelerators(count, name),
  };
}

/** Instance types with GPUs or Trainium, by name. */
export const ACCELERATED_INSTANCES: Readonly<Record<string, InstanceFacts>> = Object.fromEntries(
  Object.entries(ROWS).map(([name, row]) => [name, instanceFacts(row)]),
);
