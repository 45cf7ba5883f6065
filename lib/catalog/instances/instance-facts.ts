/** The accelerators of one instance. */
export interface Accelerator {
  kind: 'gpu' | 'neuron';
  model: string;
  architecture?: string;
  /** Accelerators (GPUs or Neuron chips) of one instance. */
  count: number;
  /** Usable memory of one accelerator. */
  memoryGiB: number;
  /** Dense peak of one accelerator, without sparsity. */
  bf16DenseTflops?: number;
  fp16DenseTflops?: number;
  fp8DenseTflops?: number;
  memoryBandwidthGBs?: number;
  /** NVLink, both directions together, of one GPU; absent: PCIe or a single GPU. */
  nvlinkGBs?: number;
  /** Instances of an UltraServer, whose GPUs share one NVLink domain; absent: NVLink ends with the instance. */
  ultraServerInstances?: number;
  neuronCoresPerChip?: number;
  /**
   * NeuronCores of a chip as programs see them, where the runtime joins physical ones: pairs on Trainium2, unless
   * NEURON_LOGICAL_NC_CONFIG is 1. Source: aws-neuron-sdk logical-neuroncore-config.rst at 732f514f, retrieved 2026-11-23.
   */
  logicalCoresPerChip?: number;
}

/** What AWS publishes of an instance type: accelerators, memory in GiB, network in Gbit/s, EFA interfaces, local storage. */
export interface InstanceFacts {
  vcpus: number;
  memoryGiB: number;
  /** Instance store given to the job; 0 = EBS only. On types with one, no EBS volume exists and VolumeKmsKeyId is refused. */
  localNvmeGB: number;
  efaInterfaces: number;
  networkGbps?: number;
  /** Whether aws-ofi-nccl expects GPUDirect RDMA. */
  gpuDirectRdma: boolean;
  /** Whether training plans are sold for it. */
  trainingPlan: boolean;
  accelerator?: Accelerator;
}
