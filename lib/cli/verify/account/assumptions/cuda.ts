import type { AssumptionArea } from '../assumption';

/** Assumptions of the built-in trainer about CUDA and NCCL. `npm run test:gpu` tests them on one GPU. */
export const CUDA: AssumptionArea = {
  title: 'PyTorch on GPUs (`npm run test:gpu`)',
  assumptions: [
    {
      id: 'skipped-update',
      claim: 'The fused AdamW does not change weights, moments and step counters when `found_inf` is 1.',
      basis: 'documented',
      source:
        'torch.optim.adam of PyTorch 2.15, where gradient scalers use it; seen on an H200 (docs/evidence/2026-11-23-h200.md)',
      usedBy: 'the step loop, which does not wait to learn whether a loss is finite',
      ifWrong: 'a step that is not finite changes the weights; the run ends before it saves them',
      embedded: 'not modelled',
    },
    {
      id: 'state-behind-a-hung-collective',
      claim:
        'While a collective hangs, events and copies on another CUDA stream still work, and updates that were launched after it do not start.',
      basis: 'documented',
      source:
        'order of operations in a CUDA stream; https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams and seen on an H200 with an all-reduce that another rank joined later (docs/evidence/2026-11-27-h200.md)',
      usedBy: 'the save of a stalled step',
      ifWrong: 'the run continues from its newest checkpoint instead of its last step',
      embedded: 'not modelled',
    },
    {
      id: 'pinned-shared-memory',
      claim:
        'cudaHostRegister pins the memory of a memfd that a process forked before CUDA also maps, and copies to it are as fast as to other pinned memory.',
      basis: 'inferred',
      source:
        'torch/distributed/_state_dict_utils.py of PyTorch 2.15 registers shared memory of /dev/shm, which is the same kind of memory; as fast as PyTorch’s own on an H200 (docs/evidence/2026-11-27-h200.md)',
      usedBy: 'saves of the built-in trainer (containers/trainer/slipway_trainer/checkpoint/process.py)',
      ifWrong: 'the log reports that host memory is not pinned, and each save blocks training several times as long',
      embedded: 'not modelled',
    },
    {
      id: 'gpu-seen-again',
      claim:
        'nvidia-smi in a container shows the UUIDs of the GPUs, they stay the same over all jobs on a machine, and SageMaker may hand out a machine again on which a job has failed.',
      basis: 'guessed',
      source:
        'nvidia-smi documents that the UUID of a GPU does not change; no source says which machines SageMaker hands out again',
      usedBy: 'GPUs that are remembered (lib/core/lifecycle/health/known-gpus.ts)',
      ifWrong: 'a broken GPU is found by the health check or by a failure each time, as before',
      embedded: 'not modelled',
    },
    {
      id: 'two-hosts-on-one-gpu',
      claim: 'Ranks with different NCCL_HOSTID on one GPU communicate over NCCL’s sockets like two hosts.',
      basis: 'documented',
      source:
        'https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-hostid (seen on an H200: docs/evidence/2026-11-23-h200.md)',
      usedBy: 'cases of `npm run test:gpu`; nothing in jobs',
      ifWrong: 'these cases fail',
      embedded: 'not modelled',
    },
    {
      id: 'tensor-parallel-nccl',
      claim: 'Sequence and vocabulary parallelism have the same results on GPUs with NCCL as on CPUs with gloo.',
      basis: 'inferred',
      source:
        'docs/numerics.md, in float32 on CPUs; two ranks on one H200 differ by 9.5e-7 (docs/evidence/2026-11-23-h200.md)',
      usedBy: 'tensor_parallel_degree of the built-in trainer',
      ifWrong: 'losses differ from those of another layout',
      embedded: 'not modelled',
    },
    {
      id: 'experts-without-rows',
      claim: 'On Hopper, PyTorch’s grouped matrix products return zero gradients for experts without rows.',
      basis: 'documented',
      source:
        'https://github.com/pytorch/pytorch/issues/172439 (correct on H800, wrong on B200, where the built-in trainer does not use them); correct on an H200 (docs/evidence/2026-11-27-h200.md)',
      usedBy: 'mixtures of small experts in the built-in trainer on P5',
      ifWrong: 'experts without tokens in a micro-batch are updated with uninitialised gradients',
      embedded: 'not modelled',
    },
    {
      id: 'attention-kernels',
      claim:
        'FlexAttention of PyTorch 2.11 and later computes windows, documents, sinks and capped scores in one kernel on every GPU type, and latent attention has a fused kernel.',
      basis: 'inferred',
      source:
        'measured on an H200 (docs/evidence/2026-11-27-h200.md); other GPUs and PyTorch of the image (2.13) were not measured',
      usedBy:
        'memory and speed of documentMask, fine-tuning, models with windows, GPT-OSS and DeepSeek in the built-in trainer',
      ifWrong: 'all attention scores of a layer are stored in memory, and long sequences do not fit',
      embedded: 'not modelled',
    },
  ],
};
