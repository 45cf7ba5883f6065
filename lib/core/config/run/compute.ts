import { z } from 'zod';
import { field, flag, option, section } from '../formats/field';
import { arn, count, groupName, text, trainingPlanArn, words } from './formats';

/** Size of the EBS volume of an instance without local disks, unless the run file says otherwise, GiB. */
export const DEFAULT_VOLUME_GIB = 100;

const instanceType = 'SageMaker instance type.';

const instanceGroup = section('A group of equal instances.', {
  name: field(groupName, 'Name of the group, to which channels refer.', { examples: ['gpu'] }),
  instanceType: field(text, instanceType, { examples: ['ml.p4d.24xlarge'] }),
  instanceCount: field(count, 'Number of instances of the group.', { examples: [2] }),
});

/** `{min, max}`: each attempt uses as many instances as are available. */
const instanceCount = z.union(
  [
    field(count, 'Number of instances.'),
    section('Each attempt has as many instances as there is room for.', {
      min: field(count, 'Minimum number of instances of an attempt.', { examples: [2] }),
      max: field(count, 'Maximum number of instances of an attempt.', { examples: [8] }),
    }),
  ],
  { error: 'must be a whole number from 1 on, or { min, max }' },
);

const alternative = section('Instances to take when those before it have no capacity.', {
  instanceType: field(text, instanceType, { examples: ['ml.p4de.24xlarge'] }),
  instanceCount: option(count, 'Number of instances of this type. Default: `compute.instanceCount`.', {
    examples: [4],
  }),
  trainingPlanArn: option(arn('sagemaker'), 'Training plan that holds these instances. Default: none, on demand.', {
    examples: ['arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine'],
  }),
});

const placement = z.strictObject({
  multipleJobs: flag('Whether other jobs may share the UltraServers.'),
  ultraServers: option(
    z
      .array(
        section('One UltraServer.', {
          id: option(words(256), 'ID of the UltraServer. Default: any.', { examples: ['us-0123456789abcdef0'] }),
          instanceCount: field(count, 'Number of instances on this UltraServer.', { examples: [9] }),
        }),
      )
      .min(1)
      .max(10),
    'Instances that must be on the same UltraServer. Default: SageMaker distributes them.',
    { examples: [[{ instanceCount: 9 }, { instanceCount: 9 }]] },
  ),
});

export const compute = z.strictObject({
  instanceType: option(
    text,
    `${instanceType} Required unless \`instanceGroups\` describes the cluster. Default: none.`,
    { examples: ['ml.p5.48xlarge'] },
  ),
  instanceCount: option(
    instanceCount,
    'Number of training instances, or `{ min, max }` for an elastic run, in which each attempt uses as many instances as are available.',
    { default: 1, examples: [64, { min: 16, max: 64 }] },
  ),
  spareInstances: option(
    z.int().min(0).max(100),
    'Additional hosts in the job that replace hosts with a hardware failure.',
    { default: 0, examples: [2] },
  ),
  instanceGroups: option(
    z.array(instanceGroup).min(1).max(5),
    'Groups of a heterogeneous cluster, instead of `instanceType` and `instanceCount`. Default: one group of identical instances.',
    {
      examples: [
        [
          { name: 'gpu', instanceType: 'ml.p4d.24xlarge', instanceCount: 2 },
          { name: 'cpu', instanceType: 'ml.c5.18xlarge', instanceCount: 4 },
        ],
      ],
    },
  ),
  alternatives: option(
    z.array(alternative),
    'Other instance types to use, in this order, if the preceding types have no capacity (InstancePreferences of the API).',
    { default: [], examples: [[{ instanceType: 'ml.p4de.24xlarge' }]] },
  ),
  capacity: option(
    z.enum(['on-demand', 'spot', 'training-plan']),
    'Purchase option of the instances. Default: on-demand; training-plan when `trainingPlanArn` is given.',
  ),
  trainingPlanArn: option(
    trainingPlanArn,
    'Training plan that holds the instances, with `capacity: training-plan`. Default: none.',
    { examples: ['arn:aws:sagemaker:us-west-2:111122223333:training-plan/mine'] },
  ),
  volumeSizeGiB: option(
    count,
    `Size of the EBS volume of each instance, in GiB. Types with local NVMe disks have no such volume. Default: ${DEFAULT_VOLUME_GIB} on types without NVMe.`,
    { examples: [500] },
  ),
  keepAliveSeconds: option(
    z.int().min(0).max(21600),
    'Time for which instances are kept in a warm pool after the job, in seconds; 0 for no warm pool.',
    { default: 0, examples: [1800] },
  ),
  infraCheck: option(
    z.boolean(),
    'Whether SageMaker checks the hardware and the network of the cluster before the job starts (InfraCheckConfig of the API), in addition to `healthCheck`. Default: the default of SageMaker.',
    { examples: [true] },
  ),
  placement: option(
    placement,
    'Placement of instances of an UltraServer type (InstancePlacementConfig of the API). Default: SageMaker places them.',
    { examples: [{ multipleJobs: false, ultraServers: [{ instanceCount: 9 }] }] },
  ),
  healthCheck: option(
    z.enum(['off', 'quick', 'full']),
    'Health check of each host before training: quick takes seconds, full about a minute. Default: quick on GPU instances with `contract: entrypoint`, otherwise off.',
  ),
});

export const distribution = z.strictObject({
  library: option(
    text,
    'Library that distributes the training. Default: fsdp for the built-in trainer, custom for user code.',
    { examples: ['fsdp'] },
  ),
  launcher: option(
    z.enum(['torchrun', 'mpi', 'ray', 'script']),
    'Launcher of the processes on each host; ray starts a Ray cluster on all hosts, and the entry point on the first host. Default: mpi for smp-v1 and for smddp with the toolkit contract; torchrun for fsdp, ddp, smp-v2, deepspeed, megatron, and for custom Python scripts on accelerators; otherwise script.',
  ),
  collectives: option(
    z.enum(['auto', 'nccl', 'smddp', 'gloo']),
    'Library of the collective operations; auto is nccl on GPUs and gloo on CPUs.',
    { default: 'auto' },
  ),
  contract: option(
    z.enum(['entrypoint', 'toolkit', 'container']),
    'What starts the training in the container: the Slipway driver (entrypoint), the SageMaker training toolkit in the image (toolkit), or the entrypoint of the image (container). Default: container with `code.source: image`, toolkit for smp-v1 and Hugging Face images, otherwise entrypoint.',
  ),
  processesPerHost: option(
    count,
    'Processes on each host. Default: the number of accelerators of the instance type; 1 with `launcher: script` and on CPUs.',
    { examples: [8] },
  ),
  parameters: option(
    z.record(z.string(), field(z.unknown(), 'A parameter of the library, by its own name.')),
    'Parameters of the library, with the names that the library uses: `tensor_parallel_degree` of smp-v2, the JSON configuration of deepspeed, the flags of megatron, `shard_degree` of fsdp, options of `ray start` with `launcher: ray`.',
    { default: {}, examples: [{ shard_degree: 64, compile: true }] },
  ),
  mpiOptions: option(text, 'Additional options of the mpirun command, with `launcher: mpi`.', {
    default: '',
    examples: ['-x SMDATAPARALLEL_OPTIMIZE_SDP=true'],
  }),
  instanceGroups: option(z.array(text).min(1), 'Instance groups that train. Default: all groups of the cluster.', {
    examples: [['gpu']],
  }),
});
