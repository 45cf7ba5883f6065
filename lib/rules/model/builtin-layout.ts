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
    fix: `set training.precision to one of them${/^(mxfp8|nvfp4)$/.test(training.precision) ? ', or use own code with torchao or Transformer Engine' : '; GPUs without bf16 need fp32'}`,
  });
}

function unsupportedLayout(run: RunSpec, layout: ParallelLayout): Finding[] {
  const shape = run.model?.architecture;
  const { tensor, expert, shard, context } = layout;
  const path = (name: string) => `distribution.parameters.${name}_parallel_degree`;
  return [
    ...when(tensor > 1 && shape !== undefined && shape.ffnHiddenSize % tensor !== 0, {
      path: path('tensor'),
      must: `must divide ffnHiddenSize ${shape?.ffnHiddenSize}`,
      got: tensor,
      fix: 'use a divisor',
    }),
    ...when(tensor > 1 && (shape?.experts ?? 0) > 0, {
      path: path('tensor'),
      must: 'must be 1 for a mixture of experts in the built-in trainer',
      got: tensor,
      fix: 'use expert_parallel_degree',
    }),
    ...when(tensor > 1 && run.training.precision === 'fp8', {
      path: path('tensor'),
      must: 'must be 1 with precision fp8 in the built-in trainer',
      got: tensor,
      fix: 'use bf16, or remove the degree',
    }),
    ...when(tensor > 1 && run.distribution.parameters.compile === true, {
      path: 'distribution.parameters.compile',
      must: 'must be false with tensor_parallel_degree in the built-in trainer, whose compiled layers would not compute the same',
      got: true,
      fix: 'leave it out',
    }),
    ...when(expert > 1 && (shard * context) % expert !== 0, {
      path: path('expert'),
      must: `must divide shard ${shard} x context ${context}`,
      got: expert,
      fix: 'use a divisor',
    }),
  ];
}

/** What the trainer's backend FSDP1 cannot do. */
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

/** What the built-in trainer refuses before its first step, refused before instances start. test/rules/trainer-layout.test.ts compares. */
export const BUILTIN_LAYOUT_RULES: readonly Rule[] = [
  {
    id: 'training/builtin-precision',
    level: 'error',
    what: 'The built-in trainer computes in bf16 or fp32, with fsdp also in fp8.',
    why: 'It has no loss scaling, which fp16 needs, and ends with exit code 77.',
    source: SOURCE,
    check: (run: RunSpec) => (run.code.builtin === 'builtin' ? unsupportedPrecision(run) : []),
  } satisfies Rule,
  {
    id: 'training/builtin-layout',
    level: 'error',
    what: 'With the built-in trainer, degrees divide what they split, and tensor parallelism goes with dense bf16 or fp32 models that are not compiled.',
    why: 'Every instance would start, and end with exit code 77.',
    source: SOURCE,
    check: (run: RunSpec) => {
      const layout = findStrategy(run)?.layout(run);
      const applies = run.code.builtin === 'builtin' && run.distribution.library === 'fsdp';
      return applies && layout ? [...unsupportedLayout(run, layout), ...unsupportedOnFsdp1(run, layout)] : [];
    },
  } satisfies Rule,
].map(trainingRule);
