import { findInstanceType } from '../../catalog/instances/instances';
import FAMILIES from '../../catalog/model/imported-families.json';
import { adaptableLayers, QUANTIZED_BLOCK, unquantizableLayers } from '../../catalog/model/linear-layers';
import type { ModelShape } from '../../catalog/model/shape';
import { partsBeyondLlama, splitSizes, unsplitParts, untrainedParts } from '../../catalog/model/trainer-limits';
import constants from '../../catalog/trainer-constants.json';
import { configKeys } from '../../config/inline';
import { orList } from '../../config/issue';
import {
  builtinRule,
  type Finding,
  type Rule,
  type RuleContext,
  rule,
  trainingRule,
  UNSHOWN,
  when,
} from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { findStrategy } from '../../distribution';
import { fsdpDegrees, usesFsdp1 } from '../../distribution/fsdp';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { type ParallelLayout, trainingTypes } from '../../distribution/strategy';
import { BUILTIN_ONLY } from '../own-code';

/**
 * Layers of a mixture that are not linear layers in transformers 5, which stores all experts in one tensor and has its own router: PEFT
 * 0.21 gives them no adapter, or a different one (test/containers/test_adapter_families.py).
 */
const EXPERT_LAYERS: readonly string[] = constants.expertLayers;
const EXPORT = 'code.arguments.export-adapter';
const TARGETS = 'training.lora.targets';

const exportsAdapter = ({ code }: RunSpec) => code.builtin === 'builtin' && code.arguments['export-adapter'] === true;

/** Findings for names of layers that the model does not have, or whose adapters cannot be used. */
function targetFindings(run: RunSpec, targets: readonly string[], shape: ModelShape): Finding[] {
  const known = adaptableLayers(shape);
  const unknown = targets.filter((name) => name !== 'head' && !known.includes(name));
  const adaptsExperts = shape.experts !== undefined && EXPERT_LAYERS.some((layer) => targets.includes(layer));
  return [
    // Merging the adapter into the head would make it differ from the embedding.
    ...when(shape.tiedEmbeddings && targets.includes('head'), TARGETS, {
      must: 'must not name head when model.architecture.tiedEmbeddings is true',
      got: 'head',
    }),
    ...when(unknown.length > 0, TARGETS, {
      must: `must name layers of the model (${known.join(', ')})`,
      got: unknown.join(', '),
      fix: 'correct the names',
    }),
    ...when(exportsAdapter(run) && adaptsExperts, EXPORT, {
      must: 'must be left out where training.lora.targets names experts or the router',
      got: targets.join(', '),
      fix: 'use export-weights, or adapters of attention only',
    }),
  ];
}

const QUANTIZATION = 'training.lora.quantization';
function quantizationFindings(run: RunSpec): Finding[] {
  const { distribution, training, model } = run;
  const isSplit = distribution.library === 'fsdp' && !usesFsdp1(run) && fsdpDegrees(run).tensor > 1;
  const uneven = model ? unquantizableLayers(model.architecture).join(', ') : '';
  const beyond: [isBeyond: boolean, reason: string][] = [
    [distribution.library === 'deepspeed', 'with deepspeed in the built-in trainer'],
    [isSplit, 'with tensor_parallel_degree in the built-in trainer'],
    [training.precision === 'fp8', 'with precision fp8 in the built-in trainer'],
    [usesFsdp1(run), "with the built-in trainer's backend fsdp1"],
    [uneven !== '', `where layers have inputs that are not a multiple of ${QUANTIZED_BLOCK}: ${uneven}`],
  ];
  return beyond.flatMap(([isBeyond, reason]) => when(isBeyond, QUANTIZATION, { must: `must be left out ${reason}` }));
}

/**
 * Findings for images and GPUs without the library. bitsandbytes 0.50 needs compute capability 6.0
 * (https://github.com/bitsandbytes-foundation/bitsandbytes/blob/0.50.0/README.md, 2026-11-28), which Kepler does not have.
 */
function libraryFindings(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  const version = pytorchOfImage(run) ?? (run.image.kind === 'environment' ? descriptor?.image?.pytorch : undefined);
  const old = trainingTypes(run).find(({ type }) => findInstanceType(type)?.accelerator?.architecture === 'Kepler');
  return [
    ...when(version !== undefined && compareVersions(version, constants.nf4SincePytorch) < 0, QUANTIZATION, {
      must: `must be left out under PyTorch ${version}`,
      fix: `use an image with PyTorch ${constants.nf4SincePytorch} or later`,
    }),
    ...when(run.image.kind === 'dlc', QUANTIZATION, {
      level: 'warning',
      must: 'must be used in an image with bitsandbytes, which is not among the packages of AWS images',
      fix: 'use the image of the environment, or image.uri',
    }),
    ...when(old !== undefined, QUANTIZATION, {
      must: `must be left out on ${old?.type}: bitsandbytes needs GPUs of compute capability 6.0 or later`,
      fix: 'use a newer GPU',
    }),
  ];
}

export const ADAPTER_RULES: readonly Rule[] = [
  rule('training/lora', 'error', (run, context) => {
    const { code, training, model, checkpoints, distribution, written } = run;
    const { lora } = training;
    if (!lora)
      return when(exportsAdapter(run), EXPORT, {
        must: 'must be used with training.lora',
        fix: 'remove it, or use export-weights',
      });
    if (code.builtin !== 'builtin') return { path: 'training.lora', ...BUILTIN_ONLY };
    return [
      ...when(!written.model?.weights && !checkpoints.startFrom, 'training.lora', {
        must: 'must be used with model.weights or checkpoints.startFrom',
        got: UNSHOWN,
        fix: 'add model.weights',
      }),
      ...when(distribution.library === 'smp-v2', 'training.lora', {
        must: 'must be left out with smp-v2 in the built-in trainer',
        got: `rank ${lora.rank}`,
        fix: 'use fsdp',
      }),
      ...(model ? targetFindings(run, lora.targets, model.architecture) : []),
      ...(lora.quantization ? [...quantizationFindings(run), ...libraryFindings(run, context)] : []),
    ];
  }),
].map(trainingRule);

const pathOf = (name: 'tensor' | 'expert'): string => `distribution.parameters.${name}_parallel_degree`;

/** Precisions of the built-in trainer by library: containers/trainer/slipway_trainer/settings.py and limits.py. */
const precisions = (library: string): string[] => (library === 'fsdp' ? ['bf16', 'fp32', 'fp8'] : ['bf16', 'fp32']);

/** Layers of experts and of models with experts that can have adapters; limits.py has the same list. */
const OF_MIXTURES = [...EXPERT_LAYERS, 'shared_gate'];
const adaptedExperts = ({ model, training }: RunSpec): string[] =>
  model?.architecture.experts ? (training.lora?.targets ?? []).filter((name) => OF_MIXTURES.includes(name)) : [];

/** Degrees of a run; they are known also where they do not make up its ranks. */
type Degrees = ReturnType<typeof fsdpDegrees>;

function unevenParts(run: RunSpec, { tensor, expert, shard, context }: ParallelLayout): Finding[] {
  return [
    ...Object.entries(run.model ? splitSizes(run.model.architecture) : {}).flatMap(([name, size]) =>
      when(size % tensor !== 0, pathOf('tensor'), { must: `must divide ${name} ${size}`, fix: 'use a divisor' }),
    ),
    ...when(expert > 1 && (shard * context) % expert !== 0, pathOf('expert'), {
      must: `must divide shard ${shard} x context ${context}`,
      fix: 'use a divisor',
    }),
  ];
}

function besideTensor(run: RunSpec, { tensor, expert }: Degrees): Finding[] {
  if (tensor <= 1 || usesFsdp1(run)) return [];
  const path = pathOf('tensor');
  return [
    ...when(expert > 1, path, {
      must: 'must be 1 with expert_parallel_degree in the built-in trainer',
      fix: 'use one of the two',
    }),
    ...when(adaptedExperts(run).length > 0, 'training.lora.targets', {
      must: 'must only contain layers outside experts with tensor_parallel_degree in the built-in trainer',
      got: adaptedExperts(run).join(', '),
      fix: 'remove them, or the degree',
    }),
    ...when(run.training.precision === 'fp8', path, {
      must: 'must be 1 with precision fp8 in the built-in trainer',
      fix: 'use bf16, or remove the degree',
    }),
    ...when(run.distribution.parameters.compile === true, 'distribution.parameters.compile', {
      must: 'must be false with tensor_parallel_degree in the built-in trainer, whose compiled layers would have different results',
    }),
  ];
}

function unsupportedOnFsdp1(run: RunSpec, { tensor, expert }: Degrees): Finding[] {
  const { distribution, training } = run;
  if (!usesFsdp1(run)) return [];
  const beyond: [path: string, allowed: string | number | boolean, isWrong: boolean][] = [
    [pathOf('tensor'), 1, tensor > 1],
    [pathOf('expert'), 1, expert > 1],
    ['distribution.parameters.compile', false, distribution.parameters.compile === true],
    ['training.precision', 'bf16 or fp32', training.precision === 'fp8'],
  ];
  return beyond.flatMap(([path, allowed, isWrong]) =>
    when(isWrong, path, {
      must: `must be ${allowed} with the built-in trainer's backend fsdp1`,
      fix: 'change it, or leave out backend fsdp1 and collectives smddp',
    }),
  );
}

const IMPORTED = Object.keys(FAMILIES);

function foreignParts(run: RunSpec, shape: ModelShape): Finding[] {
  const { library } = run.distribution;
  const tensor = findStrategy(run)?.layout(run)?.tensor ?? 1;
  const parts = partsBeyondLlama(shape);
  const unsplit = unsplitParts(shape);
  return [
    ...when(library === 'fsdp' && tensor > 1 && unsplit.length > 0, 'distribution.parameters.tensor_parallel_degree', {
      must: `must be 1 for a model with ${unsplit.join(', ')} in the built-in trainer`,
      fix: 'remove it, and shard over more ranks',
    }),
    ...when(library === 'deepspeed' && shape.routing?.bias === true, 'distribution.library', {
      must: 'must be fsdp for a model with routing.bias in the built-in trainer',
      fix: 'use fsdp',
    }),
    ...when(library === 'smp-v2' && parts.length > 0, 'distribution.library', {
      must: `must be fsdp or deepspeed for a model with ${parts.join(', ')} in the built-in trainer`,
      fix: 'use fsdp',
    }),
  ];
}

/** Configurations that the built-in trainer rejects before its first step are rejected here before instances start.
 * test/core/rules/trainer-layout.test.ts compares both. */
export const BUILTIN_LAYOUT_RULES: readonly Rule[] = [
  rule('training/builtin-precision', 'error', ({ distribution, training }) => {
    const known = precisions(distribution.library);
    return when(!known.includes(training.precision), 'training.precision', {
      must: `must be ${orList(known)} for the built-in trainer with ${distribution.library}`,
      fix: `set training.precision to one of them${/^(mxfp8|nvfp4)$/.test(training.precision) ? ', or use custom code with torchao or Transformer Engine' : '; GPUs without bf16 need fp32'}`,
    });
  }),
  rule('training/builtin-layout', 'error', (run) => {
    if (run.distribution.library !== 'fsdp') return [];
    const layout = findStrategy(run)?.layout(run);
    const degrees = fsdpDegrees(run);
    return [
      ...(layout ? unevenParts(run, layout) : []),
      ...besideTensor(run, degrees),
      ...unsupportedOnFsdp1(run, degrees),
    ];
  }),
  rule('model/builtin-parts', 'error', (run) => {
    const shape = run.model?.architecture;
    if (!shape) return [];
    const way = (['preset', 'config', 'architecture'] as const).find((one) => run.written.model?.[one] !== undefined);
    return untrainedParts(shape).map((part) => ({
      path: `model.${way}`,
      must: 'must be a model that the built-in trainer supports',
      got: part,
      fix: 'use another model, or custom code',
    }));
  }),
  rule('model/builtin-split', 'error', (run) => (run.model ? foreignParts(run, run.model.architecture) : [])),
  /** Weights that the built-in trainer does not read: quantized ones, and those of a family whose files call or arrange tensors otherwise. */
  rule('model/builtin-weights', 'error', ({ model, written }) => {
    if (!model?.weights) return [];
    const modelType = model.architecture.family?.modelType;
    const { quantization_config: quantized } = configKeys(written.model?.config);
    return [
      ...when(modelType !== undefined && !IMPORTED.includes(modelType), 'model.weights', {
        must: `must be weights of a family that the built-in trainer imports: ${IMPORTED.join(', ')}`,
        got: modelType,
        fix: 'use custom code; for weights that the built-in trainer exported, give the config.json beside them as model.config',
      }),
      ...when(quantized !== undefined && quantized !== null, 'model.config', {
        must: 'must have no quantization_config with model.weights: the built-in trainer reads bf16, fp16 and fp32',
        got: quantized,
        fix: 'use weights that are not quantized, with their config.json',
      }),
    ];
  }),
].map(builtinRule);
