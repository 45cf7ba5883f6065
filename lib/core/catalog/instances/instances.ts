import { nearest } from '../nearest';
import { ACCELERATED_INSTANCES, type Accelerator, type InstanceFacts } from './accelerated-instances';

// The CPU types of TrainingInstanceType in @aws-sdk/client-sagemaker 3.1142.0,
// retrieved 2026-11-20. vCPUs and memory follow from size and family (instances.ts).
const SIZES: Readonly<Record<string, string>> = {
  c4: '2xlarge 4xlarge 8xlarge xlarge',
  c5: '18xlarge 2xlarge 4xlarge 9xlarge xlarge',
  c5n: '18xlarge 2xlarge 4xlarge 9xlarge xlarge',
  c6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge xlarge',
  c7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  c8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge xlarge',
  m4: '10xlarge 16xlarge 2xlarge 4xlarge xlarge',
  m5: '12xlarge 24xlarge 2xlarge 4xlarge large xlarge',
  m6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge large xlarge',
  m7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  m8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge large xlarge',
  r5: '12xlarge 16xlarge 24xlarge 2xlarge 4xlarge 8xlarge large xlarge',
  r5d: '12xlarge 16xlarge 24xlarge 2xlarge 4xlarge 8xlarge large xlarge',
  r6i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 4xlarge 8xlarge large xlarge',
  r7i: '12xlarge 16xlarge 24xlarge 2xlarge 48xlarge 4xlarge 8xlarge large xlarge',
  r8i: '12xlarge 16xlarge 24xlarge 2xlarge 32xlarge 48xlarge 4xlarge 8xlarge 96xlarge large xlarge',
  t3: '2xlarge large medium xlarge',
};

/** Instance types without accelerators that SageMaker training and processing jobs support. */
export const CPU_INSTANCE_TYPES: readonly string[] = Object.entries(SIZES).flatMap(([family, sizes]) =>
  sizes.split(' ').map((size) => `ml.${family}.${size}`),
);

export type { Accelerator } from './accelerated-instances';

/** An instance type with its name, including the prefix `ml.`. */
export interface InstanceType extends InstanceFacts {
  name: string;
}

/** GiB of memory per vCPU by CPU family letter: https://docs.aws.amazon.com/ec2/latest/instancetypes/, retrieved 2026-11-20. */
const CPU_MEMORY_PER_VCPU: Readonly<Record<string, number>> = { m: 4, c: 2, r: 8, t: 4 };

/** Sizes whose vCPU count is not four times the number before "x". */
const CPU_VCPU_EXCEPTIONS: Readonly<Record<string, number>> = { 'ml.c4.8xlarge': 36, 'ml.t3.medium': 2 };

function cpuVcpus(name: string, size: string): number {
  const exception = CPU_VCPU_EXCEPTIONS[name];
  if (exception !== undefined) return exception;
  if (size === 'large' || size === 'medium') return 2;
  return 4 * (size === 'xlarge' ? 1 : Number.parseInt(size, 10));
}

function cpuFacts(name: string): InstanceFacts {
  const [, family = '', size = ''] = name.split('.');
  const vcpus = cpuVcpus(name, size);
  return {
    vcpus,
    memoryGiB: vcpus * (CPU_MEMORY_PER_VCPU[family.charAt(0)] ?? 4),
    localNvmeGB: family === 'r5d' ? Math.round(vcpus * 37.5) : 0,
    efaInterfaces: name === 'ml.c5n.18xlarge' ? 1 : 0,
    gpuDirectRdma: false,
    trainingPlan: false,
  };
}

const ALL: ReadonlyMap<string, InstanceType> = new Map(
  [
    ...Object.entries(ACCELERATED_INSTANCES),
    ...CPU_INSTANCE_TYPES.map((name): [string, InstanceFacts] => [name, cpuFacts(name)]),
  ].map(([name, facts]) => [name, { name, ...facts }]),
);

/** All training instance types in the catalog. */
export const INSTANCE_TYPES: readonly InstanceType[] = [...ALL.values()];

/** The data of instance type `name`; undefined when SageMaker training has no such type. */
export function findInstanceType(name: string): InstanceType | undefined {
  return ALL.get(name);
}

/** Whether a type has local NVMe drives instead of an EBS volume. */
export const hasLocalNvme = (name: string): boolean => (ALL.get(name)?.localNvmeGB ?? 0) > 0;

/** Whether a type has EFA interfaces. */
export const hasEfa = (name: string): boolean => (ALL.get(name)?.efaInterfaces ?? 0) > 0;

const PRE_AMPERE: readonly string[] = ['Kepler', 'Volta', 'Turing'];

/** Whether an accelerator does not support bf16. */
export const lacksBf16 = ({ architecture = '' }: Accelerator): boolean => PRE_AMPERE.includes(architecture);

/** Number of GPUs or Neuron chips per instance; 0 for CPU types and unknown types. */
export function acceleratorCount(name: string): number {
  return ALL.get(name)?.accelerator?.count ?? 0;
}

/** Environment variable of the Neuron runtime: number of physical NeuronCores per logical core, 1 or 2. */
export const LOGICAL_CORE_VARIABLE = 'NEURON_LOGICAL_NC_CONFIG';

/** Default number of processes per host: GPUs, otherwise logical NeuronCores under the given `variables`, otherwise 1. */
export function defaultProcessesPerHost(name: string, variables: Readonly<Record<string, string>> = {}): number {
  const accelerator = ALL.get(name)?.accelerator;
  if (!accelerator) return 1;
  const { count, neuronCoresPerChip = 1, logicalCoresPerChip = neuronCoresPerChip } = accelerator;
  return count * (variables[LOGICAL_CORE_VARIABLE] === '1' ? neuronCoresPerChip : logicalCoresPerChip);
}

/** Types with the most similar names, best first, for "did you mean". */
export const nearestInstanceTypes = (name: string): string[] => nearest(name, [...ALL.keys()]);
