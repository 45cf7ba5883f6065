import { sharedFfnOf } from '../../catalog/model/parameters';
import type { ModelShape } from '../../catalog/model/shape';
import { findStrategy } from '../../distribution';
import { usesFsdp1 } from '../../distribution/fsdp';
import type { ParallelLayout } from '../../distribution/strategy';
import { orList } from '../../spec/issue';
import type { RunSpec } from '../../spec/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

const SOURCE = 'containers/trainer';

/** Precisions of the built-in trainer by library: containers/trainer/slipway_trainer/settings.py and backend_choice.py. */
const precisions = (library: string): string[] => (library === 'fsdp' ? ['bf16', 'fp32', 'fp8'] : ['bf16', 'fp32']);

function unsupportedPrecision({ distribution, training }: RunSpec): Finding[] {
  const known = precisions(distribution.library);
  return when(!known.includes(training.precision), {
    path: 'training.precision',
    must: `must be ${orList(known)} for the built-in trainer with ${distribution.library}`,
    got: training.precision,
    fix: `set training.precision to one of them${/^(mxfp8|nvfp4)$/.test(training.precision) ? ', or use custom code with torchao or Transformer Engine' : '; GPUs without bf16 need fp32'}`,
  });
}

/** Inner sizes that tensor parallelism must divide; another rule covers heads. architecture.py has the same list. */
const splitSizes = (shape: ModelShape | undefined): [name: string, size: number][] =>
  shape === undefined
    ? []
    : [
        ['ffnHiddenSize', shape.ffnHiddenSize],
        ['expertFfnHiddenSize', (shape.experts && shape.expertFfnHiddenSize) || 0],
        ['the inner size of shared experts', shape.experts ? sharedFfnOf(shape) : 0],
      ];

/** Layers of experts and of models with experts that can have adapters; backend_choice.py has the same list. */
const OF_MIXTURES = ['gate_proj', 'up_proj', 'down_proj', 'router', 'shared_gate'];
const adaptedExperts = ({ model, training }: RunSpec): string[] =>
  model?.architecture.experts ? (training.lora?.targets ?? []).filter((name) => OF_MIXTURES.includes(name)) : [];

/** Findings about what tensor parallelism must divide, and what it cannot be combined with. */
function unsplit(run: RunSpec, { tensor, expert }: ParallelLayout): Finding[] {
  const path = 'distribution.parameters.tensor_parallel_degree';
  return [
    ...splitSizes(run.model?.architecture).flatMap(([name, size]) =>
      when(size % tensor !== 0, {
        path,
        must: `must divide ${name} ${size}`,
        got: tensor,
        fix: 'use a divisor',
      }),
    ),
    ...when(tensor > 1 && expert > 1, {
      path,
      must: 'must be 1 with expert_parallel_degree in the built-in trainer',
      got: tensor,
      fix: 'use one of the two',
    }),
    ...when(tensor > 1 && adaptedExperts(run).length > 0, {
      path: 'training.lora.targets',
      must: 'must only contain layers outside experts with tensor_parallel_degree in the built-in trainer',
      got: adaptedExperts(run).join(', '),
      fix: 'remove them, or the degree',
    }),
  ];
}

function unsupportedLayout(run: RunSpec, layout: ParallelLayout): Finding[] {
  const { tensor, expert, shard, context } = layout;
  const path = (name: string) => `distribution.parameters.${name}_parallel_degree`;
  return [
    ...unsplit(run, layout),
    ...when(tensor > 1 && run.training.precision === 'fp8', {
      path: path('tensor'),
      must: 'must be 1 with precision fp8 in the built-in trainer',
      got: tensor,
      fix: 'use bf16, or remove the degree',
    }),
    ...when(tensor > 1 && run.distribution.parameters.compile === true, {
      path: 'distribution.parameters.compile',
      must: 'must be false with tensor_parallel_degree in the built-in trainer, whose compiled layers would have different results',
      got: true,
      fix: 'remove it',
    }),
    ...when(expert > 1 && (shard * context) % expert !== 0, {
      path: path('expert'),
      must: `must divide shard ${shard} x context ${context}`,
      got: expert,
      fix: 'use a divisor',
    }),
  ];
}

/** Findings for options that the trainer's FSDP1 backend does not support. */
function unsupportedOnFsdp1(run: RunSpec, layout: ParallelLayout): Finding[] {
  const { distribution, training } = run;
  if (!usesFsdp1(run)) return [];
  const beyond: [path: string, allowed: string | number | boolean, got: unknown, isWrong: boolean][] = [
    ['distribution.parameters.tensor_parallel_degree', 1, layout.tensor, layout.tensor > 1],
    ['distribution.parameters.expert_parallel_degree', 1, layout.expert, layout.expert > 1],
    ['distribution.parameters.compile', false, true, distribution.parameters.compile === true],
    ['training.precision', 'bf16 or fp32', training.precision, training.precision === 'fp8'],
  ];
  return beyond.flatMap(([path, allowed, got, isWrong]) =>
    when(isWrong, {
      path,
      must: `must be ${allowed} with the built-in trainer's backend fsdp1`,
      got,
      fix: 'change it, or leave out backend fsdp1 and collectives smddp',
    }),
  );
}

/**
 * Configurations that the built-in trainer rejects before its first step are rejected here before instances start.
 * test/rules/trainer-layout.test.ts compares both.
 */
export const BUILTIN_LAYOUT_RULES: readonly Rule[] = [
  {
    id: 'training/builtin-precision',
    level: 'error',
    what: 'The built-in trainer supports bf16 and fp32, with fsdp also fp8.',
    why: 'It has no loss scaling, which fp16 requires, and would exit with code 77.',
    source: SOURCE,
    check: (run: RunSpec) => (run.code.builtin === 'builtin' ? unsupportedPrecision(run) : []),
  } satisfies Rule,
  {
    id: 'training/builtin-layout',
    level: 'error',
    what: 'With the built-in trainer, each degree divides the dimension that it splits; tensor parallelism requires bf16 or fp32 without compilation and without expert parallelism.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: SOURCE,
    check: (run: RunSpec) => {
      const layout = findStrategy(run)?.layout(run);
      const applies = run.code.builtin === 'builtin' && run.distribution.library === 'fsdp';
      return applies && layout ? [...unsupportedLayout(run, layout), ...unsupportedOnFsdp1(run, layout)] : [];
    },
  } satisfies Rule,
].map(trainingRule);
