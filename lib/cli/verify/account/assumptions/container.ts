import type { AssumptionArea } from '../assumption';

const GUIDE = 'https://docs.aws.amazon.com/sagemaker/latest/dg';
const TOOLKIT = 'https://github.com/aws/sagemaker-training-toolkit';

/** The environment of a container, and how it ends. */
export const CONTAINER: AssumptionArea = {
  title: 'Inside the container',
  assumptions: [
    {
      id: 'entrypoint-replaces',
      claim:
        'ContainerEntrypoint and ContainerArguments replace those of the image, also for Deep Learning Containers.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AlgorithmSpecification.html',
      usedBy: 'every run under the entrypoint contract',
      ifWrong: 'no run starts',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'image-entrypoint',
      claim:
        'A request without ContainerEntrypoint and ContainerArguments starts the entrypoint of the image with the argument `train`.',
      basis: 'documented',
      source: `${GUIDE}/your-algorithms-training-algo-dockerfile.html`,
      usedBy: 'runs with code.source image and no containerEntrypoint',
      ifWrong:
        'the program of the image starts with other arguments than after a plain CreateTrainingJob request, or not at all',
      embedded: 'not modelled',
    },
    {
      id: 'logical-neuron-cores',
      claim:
        'A training job on ml.trn2.48xlarge sees 64 NeuronCores, pairs of physical ones, and 128 with NEURON_LOGICAL_NC_CONFIG=1 in its environment.',
      basis: 'documented',
      source:
        'https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-features/logical-neuroncore-config.html for EC2; the SageMaker training toolkit uses 64 for the type',
      usedBy: 'the processes that torchrun starts on each host, and the memory of `slipway plan`',
      ifWrong: 'ranks without a NeuronCore end the job at its start; distribution.processesPerHost sets another number',
      embedded: 'not modelled',
    },
    {
      id: 'neuron-efa',
      claim:
        'Collectives of the Neuron runtime use EFA between hosts in a training job, with only FI_PROVIDER=efa set.',
      basis: 'inferred',
      source:
        'https://awsdocs-neuron.readthedocs-hosted.com/en/latest/torch/guides/torch-distributed.html requires EFA on every node and mentions no environment variable',
      usedBy: 'runs on several ml.trn instances: NCCL is not used there, so that the EFA verdict stays unknown',
      ifWrong: 'traffic goes over TCP or collectives fail at the start, and network.efa: required does not end the job',
      embedded: 'not modelled',
    },
    {
      id: 'plan-spares',
      claim:
        'AvailableInstanceCount of DescribeTrainingPlan does not include the spare instances that the service keeps for UltraServers.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingPlan.html',
      usedBy: 'the preflight warning that a job will wait for instances of its training plan',
      ifWrong: 'the warning is missing for a job that needs the spare instances; the job waits without it',
      embedded: 'not modelled',
    },
    {
      id: 'hub-access',
      claim:
        'A training job reads a model of a private hub if its execution role has sagemaker:DescribeHub and sagemaker:DescribeHubContent, and HubAccessConfig gives it access to the objects in S3. Models of the public hub, and those that a private hub refers to, are in the buckets jumpstart-cache-prod-<region> and jumpstart-private-cache-prod-<region>, which the S3 endpoint of a locked network allows.',
      basis: 'inferred',
      source: `${GUIDE}/jumpstart-curated-hubs-ram.html (permissions of a hub that is shared for reading)`,
      usedBy: 'data[].hubContentArn, storage.hubs',
      ifWrong: 'the job fails while it downloads the model; the failure names the missing action',
      embedded: 'not modelled',
    },
    {
      id: 'resource-config',
      claim:
        'input/config/resourceconfig.json contains current_host, the sorted hosts, current_instance_type, instance_groups and network_interface_name.',
      basis: 'documented',
      source: `${GUIDE}/your-algorithms-training-algo-running-container.html`,
      usedBy: 'rank and world size that the driver computes',
      ifWrong: 'hosts disagree on ranks and the job ends with code 77',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'ultraserver-topology',
      claim:
        'On UltraServers resourceconfig.json contains `topology` with hostName and capacityUnitId of each host; capacityUnitId is equal for hosts of one UltraServer.',
      basis: 'inferred',
      source: `${TOOLKIT}/blob/master/src/sagemaker_training/environment.py ("mappings between hosts and capacity units for GB200 Ultraserver"; no source defines a capacity unit)`,
      usedBy: 'order of ranks on ml.p6e-gb200.36xlarge',
      ifWrong:
        'ranks follow the string order of hosts, and communication groups of a job on several UltraServers use EFA',
      embedded: 'not modelled',
    },
    {
      id: 'ultraserver-nvlink',
      claim:
        'NCCL in a job on UltraServers connects the GPUs of its instances by NVLink: the container has an IMEX channel, and the IMEX domain is configured.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UltraServer.html ("multiple instances within a shared NVLink interconnect domain"); https://docs.aws.amazon.com/eks/latest/userguide/ml-eks-nvidia-ultraserver.html describes the setup of IMEX on EKS; no page does so for training jobs',
      usedBy: 'plans for ml.p6e-gb200.36xlarge',
      ifWrong: 'NCCL uses EFA between instances, and runs are slower than planned',
      embedded: 'not modelled',
    },
    {
      id: 'core-dumps',
      claim:
        'A rank that a signal ends leaves no core dump, also on a host whose core_pattern pipes core dumps to a program.',
      basis: 'inferred',
      source:
        'core(5): RLIMIT_CORE is not enforced for a pipe; fs/coredump.c skips the dump at a limit of exactly 1; tried with core_pattern `core` only, and the pattern of the hosts is unknown',
      usedBy: 'restart in place after a crash',
      ifWrong: 'a restart waits for minutes while the memory of a rank is dumped',
      embedded: 'not modelled',
    },
    {
      id: 'host-names',
      claim:
        'Every host resolves algo-1 to algo-N to addresses on which the hosts reach each other, by DNS or /etc/hosts.',
      basis: 'documented',
      source: `${GUIDE}/your-algorithms-training-algo-running-container.html`,
      usedBy: 'rendezvous of torchrun, channel between drivers',
      ifWrong: 'no multi-host run starts',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'own-address',
      claim:
        'The address of the own host name belongs to an interface of the container, so that a server can listen on it.',
      basis: 'guessed',
      source: 'not documented; therefore the driver listens on all interfaces',
      usedBy:
        'nothing, because the driver listens on all interfaces; tested to learn whether scripts of users can bind to it',
      ifWrong: 'scripts that bind MASTER_ADDR fail with EADDRNOTAVAIL',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'container-root',
      claim: 'The container runs as root.',
      basis: 'reported',
      source: TOOLKIT,
      usedBy: 'process groups, resource limits, reading hardware counters',
      ifWrong: 'limits and counters are not changed or read; the driver logs this',
      embedded: 'independent',
      probe: 'train',
    },
    {
      id: 'shared-memory',
      claim: '/dev/shm has at least 1 GiB on CPU types and a share of host memory on GPU types.',
      basis: 'guessed',
      source: 'no source states a size',
      usedBy: 'data loaders with workers, NCCL between processes of a host, object store of Ray',
      ifWrong: 'bus errors of data loader workers',
      embedded: 'independent',
      probe: 'train',
    },
    {
      id: 'container-credentials',
      claim:
        'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI returns credentials of the execution role, which are renewed before they expire.',
      basis: 'documented',
      source: `${GUIDE}/your-algorithms-training-algo-running-container.html`,
      usedBy: 'heartbeats and checkpoints, whose requests the driver signs itself',
      ifWrong: 'no heartbeat; the trainer cannot save',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'sigterm-first-process',
      claim: 'StopTrainingJob sends SIGTERM to the first process of each container.',
      basis: 'documented',
      source: `${GUIDE}/your-algorithms-training-algo-running-container.html`,
      usedBy: 'save on stop',
      ifWrong: 'steps since the last checkpoint are lost on a stop',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'stop-grace',
      claim: 'SIGKILL follows SIGTERM after 120 seconds, not earlier.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StopTrainingJob.html',
      usedBy: 'the driver gives ranks 100 seconds to save',
      ifWrong: 'a save on stop is interrupted and the previous checkpoint is used',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'output-after-stop',
      claim: 'Output and checkpoints of a stopped job are uploaded after its container has ended.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StopTrainingJob.html',
      usedBy: 'managed checkpoints, reports of stopped runs',
      ifWrong: 'the last checkpoint of a stopped run is missing',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'checkpoint-sync',
      claim:
        'Files below the LocalPath of CheckpointConfig reach S3 while the container runs, whichever host wrote them.',
      basis: 'documented',
      source: `${GUIDE}/model-checkpoints.html`,
      usedBy: 'checkpoints.mode managed',
      ifWrong: 'checkpoints that exist only on a lost host are lost',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'checkpoint-restore',
      claim:
        'A job with the same S3Uri in CheckpointConfig finds every object of the prefix on its disk before its container starts.',
      basis: 'documented',
      source: `${GUIDE}/model-checkpoints.html`,
      usedBy: 'resume with checkpoints.mode managed',
      ifWrong: 'a run starts again from its first step',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'log-streams',
      claim:
        'Each host writes to stream <job>/algo-<n>-<number> of /aws/sagemaker/TrainingJobs, and lines are available within a minute.',
      basis: 'documented',
      source: `${GUIDE}/logging-cloudwatch.html`,
      usedBy: 'slipway logs and report',
      ifWrong: 'lines are shown without their host',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'bash-and-python',
      claim: 'The image of the environment has /bin/bash and python3 3.8 or later on the PATH.',
      basis: 'documented',
      source: 'https://github.com/aws/deep-learning-containers',
      usedBy: 'launch.sh and the driver',
      ifWrong: 'the job ends at once with exit code 127',
      embedded: 'independent',
      probe: 'train',
    },
    {
      id: 'one-zone',
      claim: 'All instances of a job start in one subnet.',
      basis: 'reported',
      source: 'https://repost.aws and AWS samples that size one subnet for a job',
      usedBy: 'preflight requires one subnet with enough free addresses',
      ifWrong: 'preflight rejects a run that could start',
      embedded: 'not modelled',
      probe: 'train',
    },
    {
      id: 'fastfile-mmap',
      claim: 'Files of FastFile channels can be read at any offset, and can be memory-mapped.',
      basis: 'guessed',
      source: 'not documented whether the file system supports mmap',
      usedBy: 'token shards read by the built-in trainer',
      ifWrong: 'reading fails with ENODEV; inputMode: File avoids it',
      embedded: 'repeats it',
    },
    {
      id: 'isolation-no-credentials',
      claim:
        'Under network isolation the container has neither network nor credentials, and checkpoints are uploaded only through CheckpointConfig.',
      basis: 'documented',
      source: `${GUIDE}/mkt-algo-model-internet-free.html`,
      usedBy: 'isolated runs have no heartbeat; the log is read instead',
      ifWrong: 'none: the driver makes no calls in this mode',
      embedded: 'repeats it',
    },
  ],
};
