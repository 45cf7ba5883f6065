import { findInstanceType } from '../../catalog/instances/instances';
import { adaptableLayers, QUANTIZED_BLOCK, unquantizableLayers } from '../../catalog/model/linear-layers';
import type { ModelShape } from '../../catalog/model/shape';
import constants from '../../catalog/trainer-constants.json';
import { type Finding, type Rule, type RuleContext, rule, trainingRule, UNSHOWN, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { fsdpDegrees, usesFsdp1 } from '../../distribution/fsdp';
import { compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { trainingTypes } from '../../distribution/strategy';
import { BUILTIN_ONLY } from '../own-code';

/**
 * Layers of a mixture that are not linear layers in transformers 5, which stores all experts in one tensor and has its own router: PEFT
 * 0.21 gives them no adapter, or a different one (test/containers/test_adapter_families.py).
 */
export const EXPERT_LAYERS: readonly string[] = constants.expertLayers;
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
      fix: 'remove it',
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
/** Findings for what 4-bit weights cannot be combined with in the trainer; limits.py has the same. */
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
  return beyond.flatMap(([isBeyond, reason]) =>
    when(isBeyond, QUANTIZATION, { must: `must be left out ${reason}`, fix: 'remove it' }),
  );
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

/** Rules for low-rank adapters. */
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
