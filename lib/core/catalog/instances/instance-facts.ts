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
