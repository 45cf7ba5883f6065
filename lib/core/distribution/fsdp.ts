import { orList } from '../config/issue';
import { worldSize } from '../config/resolve-run';
import { type Rule, rulesAbout } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import {
  divisorsUpTo,
  type ParameterKind,
  parameterFindings,
  parameterPath,
  unevenSequence,
  unsplitSequence,
} from './parameters';
import { degree, type ParallelLayout, strategy } from './strategy';
import { smddpEnvironment, torchrunHyperparameters } from './torchrun';

/** Parameters that the built-in trainer accepts; custom code may use others. */
const PARAMETERS: Readonly<Record<string, ParameterKind>> = {
  shard_degree: { type: 'int', min: 1 },
  replicate_degree: { type: 'int', min: 1 },
  tensor_parallel_degree: { type: 'int', min: 1 },
  context_parallel_degree: { type: 'int', min: 1 },
  expert_parallel_degree: { type: 'int', min: 1 },
  reshard_after_forward: { type: 'bool' },
  no_sync: { type: 'bool' },
  compile: { type: 'bool' },
};

const DEGREES = ['tensor_parallel_degree', 'context_parallel_degree'] as const;

/** The degrees of a run that have a default of 1, also of a run whose degrees do not make up its ranks. */
export const fsdpDegrees = (run: RunSpec): Pick<ParallelLayout, 'tensor' | 'context' | 'expert'> => ({
  tensor: degree(run, 'tensor_parallel_degree', 1),
  context: degree(run, 'context_parallel_degree', 1),
  expert: degree(run, 'expert_parallel_degree', 1),
});

/** shard x replicate x TP x CP = world; the shard degree defaults to the remaining ranks. */
export function fsdpLayout(run: RunSpec): ParallelLayout | undefined {
  const world = worldSize(run);
  const { tensor, context, expert } = fsdpDegrees(run);
  const rest = world / (tensor * context);
  const replicateGiven = degree(run, 'replicate_degree', 0);
  const shard = degree(run, 'shard_degree', replicateGiven > 0 ? rest / replicateGiven : rest);
  const replicate = rest / shard;
  if (![rest, shard, replicate].every(Number.isInteger)) return undefined;
  if (replicateGiven > 0 && replicateGiven !== replicate) return undefined;
  return { worldSize: world, tensor, pipeline: 1, context, expert, shard, replicate, dataParallel: rest };
}

/** Whether the built-in trainer uses its FSDP1 backend: when it is requested, and for SMDDP unless FSDP2 is requested. */
export const usesFsdp1 = ({ code, distribution }: RunSpec): boolean =>
  code.arguments.backend === 'fsdp1' || (code.arguments.backend !== 'fsdp2' && distribution.collectives === 'smddp');

/** Whether the built-in trainer chooses by itself what it compiles: for a dense model under FSDP2 on GPUs, if the run sets no option. */
export function compilesByDefault(run: RunSpec): boolean {
  const { library, collectives, parameters } = run.distribution;
  const isFsdp2 = library === 'fsdp' && collectives !== 'gloo' && !usesFsdp1(run);
  const isBuiltin = run.code.builtin === 'builtin' && typeof parameters.compile !== 'boolean';
  return isBuiltin && isFsdp2 && !run.model?.architecture.experts;
}

/**
 * Whether the trainer compiles blocks and loss: as set in the run, otherwise if there is no tensor parallelism. The built-in trainer
 * follows the same rule (containers/trainer/slipway_trainer/limits.py).
 */
export const fsdpCompiles = (run: RunSpec): boolean =>
  run.distribution.parameters.compile === true || (compilesByDefault(run) && fsdpDegrees(run).tensor === 1);

const rule = rulesAbout((run) => (run.distribution.library === 'fsdp' ? run.distribution.parameters : undefined));

const rules: Rule[] = [
  rule('fsdp/parameters', 'error', (run, given) => {
    const known = run.code.builtin
      ? given
      : Object.fromEntries(Object.entries(given).filter(([key]) => key in PARAMETERS));
    return parameterFindings(known, PARAMETERS, { library: 'the built-in FSDP trainer' });
  }),
  rule('fsdp/degrees', 'error', (run, given) => {
    if (fsdpLayout(run)) return [];
    const world = worldSize(run);
    const [key = 'shard_degree'] = [...DEGREES, 'shard_degree', 'replicate_degree'].filter(
      (k) => k in given && world % degree(run, k, 1) !== 0,
    );
    const p = (name: string) => degree(run, name, 1);
    const text = `TP ${p('tensor_parallel_degree')} x CP ${p('context_parallel_degree')} x shard ${p('shard_degree')} x replicate ${p('replicate_degree')}`;
    return {
      path: parameterPath(key),
      must: `must divide the world size ${world} together with the other degrees`,
      got: text,
      fix: `use degrees among ${orList(divisorsUpTo(world, 64))} whose product is ${world}`,
    };
  }),
  rule('fsdp/context-sequence', 'error', (run) =>
    run.code.builtin ? unevenSequence(run, fsdpDegrees(run).context) : [],
  ),
  rule('fsdp/tensor-sequence', 'error', (run) => {
    const { tensor, context } = fsdpDegrees(run);
    const isSplit = run.code.builtin !== undefined && tensor > 1;
    return isSplit ? unsplitSequence(run, tensor * context, 'context x tensor_parallel_degree') : [];
  }),
];

/** PyTorch fully sharded data parallel, with custom code or the built-in trainer. */
export const fsdp = strategy({
  name: 'fsdp',
  libraries: ['fsdp'],
  layout: fsdpLayout,
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
  rules,
});
