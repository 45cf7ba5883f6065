import { splitSizes } from '../../catalog/model/trainer-limits';
import { orList } from '../../config/issue';
import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { findStrategy } from '../../distribution';
import { fsdpDegrees, usesFsdp1 } from '../../distribution/fsdp';
import type { ParallelLayout } from '../../distribution/strategy';
import { EXPERT_LAYERS } from './adapters';

const pathOf = (name: 'tensor' | 'expert'): string => `distribution.parameters.${name}_parallel_degree`;

/** Precisions of the built-in trainer by library: containers/trainer/slipway_trainer/settings.py and limits.py. */
const precisions = (library: string): string[] => (library === 'fsdp' ? ['bf16', 'fp32', 'fp8'] : ['bf16', 'fp32']);

function unsupportedPrecision({ distribution, training }: RunSpec): Finding[] {
  const known = precisions(distribution.library);
  return when(!known.includes(training.precision), 'training.precision', {
    must: `must be ${orList(known)} for the built-in trainer with ${distribution.library}`,
    fix: `set training.precision to one of them${/^(mxfp8|nvfp4)$/.test(training.precision) ? ', or use custom code with torchao or Transformer Engine' : '; GPUs without bf16 need fp32'}`,
  });
}

/** Layers of experts and of models with experts that can have adapters; limits.py has the same list. */
const OF_MIXTURES = [...EXPERT_LAYERS, 'shared_gate'];
const adaptedExperts = ({ model, training }: RunSpec): string[] =>
  model?.architecture.experts ? (training.lora?.targets ?? []).filter((name) => OF_MIXTURES.includes(name)) : [];

/** Degrees of a run; they are known also where they do not make up its ranks. */
type Degrees = ReturnType<typeof fsdpDegrees>;

/** Findings for what the degrees of the layout must divide. */
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

/** Findings for what tensor parallelism cannot be combined with. */
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
      fix: 'remove it',
    }),
  ];
}

/** Findings for options that the trainer's FSDP1 backend does not support. */
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

/**
 * Configurations that the built-in trainer rejects before its first step are rejected here before instances start.
 * test/core/rules/trainer-layout.test.ts compares both.
 */
export const BUILTIN_LAYOUT_RULES: readonly Rule[] = [
  rule('training/builtin-precision', 'error', (run) =>
    run.code.builtin === 'builtin' ? unsupportedPrecision(run) : [],
  ),
  rule('training/builtin-layout', 'error', (run) => {
    if (run.code.builtin !== 'builtin' || run.distribution.library !== 'fsdp') return [];
    const layout = findStrategy(run)?.layout(run);
    const degrees = fsdpDegrees(run);
    return [
      ...(layout ? unevenParts(run, layout) : []),
      ...besideTensor(run, degrees),
      ...unsupportedOnFsdp1(run, degrees),
    ];
  }),
].map(trainingRule);
