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

/** Assumptions about EFA and NCCL. */
export const EFA: AssumptionArea = {
  title: 'EFA, NCCL and GPUs',
  assumptions: [
    {
      id: 'efa-verdict-lines',
      claim:
        'NCCL and aws-ofi-nccl print the provider, the network and GPUDirect in the format that the driver parses.',
      basis: 'documented',
      source: 'source of aws-ofi-nccl and NCCL at the versions of the image; lines quoted in NVIDIA/nccl#1597',
      usedBy: 'the EFA verdict',
      ifWrong: 'the verdict is `unknown`',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'efa-bandwidth',
      claim: 'An all-reduce of 1 GiB on two hosts reaches the bus bandwidth that the catalog expects of the type.',
      basis: 'reported',
      source: 'published nccl-tests results of awsome-distributed-ai',
      usedBy: 'expectedGBps of the verdict, planner',
      ifWrong: 'predicted step times are too low for that type',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'efa-devices',
      claim: 'A container sees as many EFA devices as its type has EFA interfaces.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html',
      usedBy: 'variables that the driver sets, the verdict',
      ifWrong: 'the driver treats the job as one without EFA',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'plugin-found',
      claim: 'NCCL of the image opens the aws-ofi-nccl plugin of the image.',
      basis: 'inferred',
      source: 'file names that NCCL opens by version, read from its published wheels',
      usedBy: 'EFA',
      ifWrong: 'sockets; `efa: required` ends the job with code 74',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'driver-cuda',
      claim: 'The host driver of GPU types supports the CUDA version of the image.',
      basis: 'guessed',
      source: 'SageMaker does not publish the driver version of training instances',
      usedBy: 'images on CUDA 13',
      ifWrong: 'torch finds no GPU; the driver logs both versions',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'health-answers',
      claim:
        "In a container on a GPU type, NVIDIA's tools return output that the health check can parse, and a healthy host is above its floors and passes.",
      basis: 'guessed',
      source: 'https://docs.nvidia.com/deploy/nvidia-smi/, 2026-11-22; not seen in a SageMaker container',
      usedBy: 'compute.healthCheck (docs/health-check.md)',
      ifWrong: 'a check has no effect, or healthy hosts are rejected: set compute.healthCheck: off',
      embedded: 'not modelled',
      probe: 'efa',
    },
    {
      id: 'encryption-efa',
      claim: 'Inter-container encryption does not cover EFA traffic.',
      basis: 'inferred',
      source: 'EFA bypasses the kernel, where IPsec works; AWS does not state it',
      usedBy: 'the rule that rejects both together',
      ifWrong: 'a working combination is rejected',
      embedded: 'not modelled',
    },
    {
      id: 'smddp-instance-check',
      claim: 'SMDDP finds its instance type with a custom entrypoint when SAGEMAKER_INSTANCE_TYPE is set.',
      basis: 'inferred',
      source: 'tests of aws/deep-learning-containers (pull request 3645)',
      usedBy: 'collectives: smddp',
      ifWrong: 'the import of smdistributed fails',
      embedded: 'not modelled',
    },
    {
      id: 'lost-gpu-words',
      claim: 'nvidia-smi and CUDA report a lost GPU with the messages that the driver classifies as hardware failure.',
      basis: 'reported',
      source: 'messages quoted in public issues',
      usedBy: 'spare hosts, class `hardware`',
      ifWrong: 'the attempt ends instead of continuing on a spare host',
      embedded: 'not modelled',
    },
  ],
};

/** Assumptions about the network of jobs. */
export const NETWORK: AssumptionArea = {
  title: 'Network',
  assumptions: [
    {
      id: 'mlflow-endpoint',
      claim:
        'An interface endpoint for aws.sagemaker.<region>.experiments is used by calls of the MLflow client to the normal addresses of tracking servers.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-interface-endpoint.html; the address in the tests of the sagemaker-mlflow package',
      usedBy: 'MLflow from jobs in a locked network',
      ifWrong: 'the MLflow client times out; a network with vpc-nat reaches the server',
      embedded: 'not modelled',
    },
    {
      id: 'zone-ids',
      claim: 'Zone ids of a Region start with the prefix that the catalog derives from its name.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html',
      usedBy: 'checks of availabilityZoneIds',
      ifWrong: 'a valid zone ID is rejected',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'endpoint-zones',
      claim:
        'The endpoint services of the locked network are offered in every zone of the Region that the environment uses.',
      basis: 'guessed',
      source: 'some services are known to be missing in use1-az3',
      usedBy: 'network.mode vpc-locked',
      ifWrong: 'the deploy of the network fails',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'pull-outside-vpc',
      claim:
        'SageMaker pulls images and sends logs outside the subnets of a job, so that a locked network needs endpoints only for services that containers call.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html names only S3',
      usedBy: 'endpoints of the locked network',
      ifWrong: 'jobs in the locked network fail to start',
      embedded: 'not modelled',
      probe: 'train',
    },
    {
      id: 'addresses-per-instance',
      claim: 'An instance uses at most two addresses of its subnet, five with EFA.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html',
      usedBy: 'preflight, size of subnets',
      ifWrong: 'a job fails for lack of addresses although preflight accepted it',
      embedded: 'not modelled',
    },
    {
      id: 'buckets-guarded',
      claim: 'The buckets of the environment are encrypted with its key, versioned, not public, and reject plain HTTP.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html',
      usedBy: 'security review',
      ifWrong: 'somebody changed a bucket after the deploy',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'self-rules',
      claim:
        'The security group of the environment allows traffic between its members in both directions on every protocol.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html',
      usedBy: 'EFA',
      ifWrong: 'jobs fall back to sockets, which `efa: required` rejects',
      embedded: 'independent',
      probe: 'read',
    },
  ],
};
