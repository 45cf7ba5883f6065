import { SMP_V1_BY_PYTORCH } from '../../catalog/images/smddp';
import { modelParameters } from '../../catalog/model/parameters';
import { type Rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { compareVersions, pytorchOfImage } from '../image-version';
import { parameterPath } from '../parameters';
import {
  dataParallelLayout,
  degree,
  groupHyperparameters,
  type ParallelLayout,
  sdkInstanceType,
  strategy,
} from '../strategy';
import { mpiHyperparameters } from '../torchrun';
import { smpV1Rule, smpV1Settings } from './parameters';
import { SMP_V1_REQUIREMENTS } from './rules';

/** Model sizes, in parameters, from which AWS's guide recommends a technique. */
const SHARD_OPTIMIZER_FROM = 1e9;
const FILE_SYSTEM_FROM = 10e9;
const DELAYED_INIT_FROM = 100e9;

const parametersOf = ({ model }: RunSpec) => (model ? modelParameters(model.architecture) : 0);
const billions = (parameters: number) => `${Math.round(parameters / 1e9)} billion parameters`;

/** Hugging Face models that SMP v1 can split without changes, with the release that added them. */
const TENSOR_PARALLEL_MODELS: readonly { name: RegExp; since: string }[] = [
  { name: /gpt2|gpt-2|bert|roberta/i, since: '1.7' },
  { name: /gpt-?j/i, since: '1.8' },
  { name: /gpt-?neo(?!x)/i, since: '1.10' },
];

function modelName(run: RunSpec): { path: string; name: string } | undefined {
  const places: [string, Readonly<Record<string, unknown>>][] = [
    ['hyperparameters', run.hyperparameters],
    ['code.arguments', run.code.arguments],
  ];
  return places.flatMap(([section, values]) =>
    ['model_name_or_path', 'model-name-or-path', 'model_name', 'model-name'].flatMap((key) => {
      const name = values[key];
      return typeof name === 'string' ? [{ path: `${section}.${key}`, name }] : [];
    }),
  )[0];
}

/** Rules in the order of their page. The last ones are AWS's recommended order of the techniques, and its tips for scripts. */
const SMP_V1_RULES: readonly Rule[] = [
  ...SMP_V1_REQUIREMENTS,
  smpV1Rule('smp-v1/prescaled-batch', 'warning, may acknowledge', (_run, { pipeline, tensor, isOn }) =>
    when(pipeline > 1 && tensor > 1 && !isOn('prescaled_batch'), parameterPath('prescaled_batch'), {
      must: 'is recommended with pipeline and tensor parallelism',
      got: false,
      fix: 'add prescaled_batch: true and scale the batch by the tensor degree',
    }),
  ),
  smpV1Rule('smp-v1/mpi-options', 'warning', (run) =>
    when(run.distribution.mpiOptions.includes('btl_vader_single_copy_mechanism'), 'distribution.mpiOptions', {
      must: 'must not repeat --mca btl_vader_single_copy_mechanism, which is a default',
    }),
  ),
  smpV1Rule('smp-v1/archived', 'warning, may acknowledge', () => ({
    path: 'distribution.library',
    must: 'must be a library that still gets releases',
    fix: 'use fsdp or megatron for new work, or acknowledge smp-v1/archived',
  })),
  smpV1Rule('smp-v1/advice-optimizer-state', 'info, may acknowledge', (run, given) => {
    const { world, pipeline, tensor, shard, isOn } = given;
    const isUseful = parametersOf(run) > SHARD_OPTIMIZER_FROM && world > pipeline * tensor && shard <= 1;
    return when(isUseful && !isOn('shard_optimizer_state'), parameterPath('shard_optimizer_state'), {
      must: `is best true for ${billions(parametersOf(run))} on several replicas`,
      got: false,
      fix: 'add shard_optimizer_state: true',
    });
  }),
  smpV1Rule('smp-v1/advice-order', 'info, may acknowledge', (run, { pipeline, tensor }) =>
    when(pipeline > 1 && tensor === 1 && run.compute.instanceCount > 1, parameterPath('pipeline_parallel_degree'), {
      must: 'is best 1 until tensor parallelism fills an instance',
      got: pipeline,
      fix: 'try tensor_parallel_degree first',
    }),
  ),
  smpV1Rule('smp-v1/advice-batch-first', 'info, may acknowledge', ({ written }, { tensor }) =>
    when(tensor > 1 && (written.training?.microBatchSize ?? 1) > 1, 'training.microBatchSize', {
      must: 'should be lowered first when memory runs out, before tensor_parallel_degree is raised',
      fix: 'keep it if the model fits',
    }),
  ),
  smpV1Rule('smp-v1/advice-microbatches', 'info, may acknowledge', (run, { pipeline }) =>
    when(pipeline > 1 && degree(run, 'microbatches', 1) === 1, parameterPath('microbatches'), {
      must: 'is best 2 or 4 with pipeline parallelism',
      got: degree(run, 'microbatches', 1),
      fix: 'add microbatches: 4, and a batch that it divides',
    }),
  ),
  smpV1Rule('smp-v1/advice-delayed-init', 'info, may acknowledge', (run) =>
    when(parametersOf(run) > DELAYED_INIT_FROM, 'model', {
      must: 'is best built under smp.delay_param_initialization',
      got: billions(parametersOf(run)),
      fix: 'wrap the construction in the script',
    }),
  ),
  smpV1Rule('smp-v1/advice-file-system', 'info, may acknowledge', (run) =>
    when(parametersOf(run) > FILE_SYSTEM_FROM && !run.data.some((c) => c.fsxLustre), 'data', {
      must: `is best on FSx for Lustre with ${billions(parametersOf(run))}`,
      got: run.data.map((c) => c.channel),
      fix: 'add an fsxLustre channel, and checkpoints.mode fsx',
    }),
  ),
  smpV1Rule('smp-v1/hugging-face-model', 'warning, may acknowledge', (run, { tensor }) => {
    const given = modelName(run);
    if (tensor <= 1 || !given) return [];
    const known = TENSOR_PARALLEL_MODELS.find(({ name }) => name.test(given.name));
    const release = SMP_V1_BY_PYTORCH[pytorchOfImage(run) ?? ''];
    const isOld = known !== undefined && release !== undefined && compareVersions(release, known.since) < 0;
    return [
      ...when(known === undefined, given.path, {
        must: 'is divided without changes for GPT-2, BERT, RoBERTa, GPT-J and GPT-Neo only',
        fix: 'register its modules with smp.tp_register, or use tensor_parallel_degree 1',
      }),
      ...when(isOld, given.path, {
        level: 'info',
        must: `is divided without changes from SMP v1 ${known?.since} on; the image carries ${release}`,
        fix: 'use a newer image, or smp.tp_register in the script',
      }),
    ];
  }),
];

/** pp * tp * rdp = world; sharded data parallelism divides the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { world, pipeline, tensor, shard, isOn } = smpV1Settings(run);
  if (world % (pipeline * tensor) !== 0) return undefined;
  const replicas = world / (pipeline * tensor);
  const optimizerShard = isOn('shard_optimizer_state') ? replicas : 1;
  const sharded = shard > 1 ? shard : optimizerShard;
  if (replicas % sharded !== 0) return undefined;
  return {
    ...dataParallelLayout(run),
    tensor,
    pipeline,
    shard: sharded,
    replicate: replicas / sharded,
    // With prescaled_batch the tensor-parallel ranks share one batch; without it each rank reads its own.
    dataParallel: isOn('prescaled_batch') ? replicas : replicas * tensor,
  };
}

/** SageMaker model parallelism v1 under MPI, which AWS no longer develops. */
export const smpV1 = strategy({
  name: 'smp-v1',
  libraries: ['smp-v1'],
  matches: (library) => library === 'smp-v1',
  layout,
  hyperparameters: (run) => ({
    ...groupHyperparameters(run),
    ...mpiHyperparameters(run),
    ...(Object.keys(run.distribution.parameters).length > 0 && { mp_parameters: run.distribution.parameters }),
    sagemaker_distributed_dataparallel_enabled: false,
    sagemaker_instance_type: sdkInstanceType(run),
  }),
  rules: SMP_V1_RULES,
});
