import { onInstances } from '../../config/resolve-run';
import { type Rule, rule, ruleWhere, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { findStrategy } from '../../distribution';
import { BUILTIN_LAYOUT_RULES } from '../model/builtin-layout';
import { TRAINING_RULES } from '../model/training';
import { SPARE_RULES } from './spares';

/** A capacity options with more sizes than this would take too long before it starts again. */
const MAX_SIZES = 8;
/** Libraries of the built-in trainer whose checkpoints can be loaded on another number of ranks, because PyTorch DCP reshards them. */
const RESHARDS: readonly string[] = ['fsdp', 'ddp'];
const path = 'compute.instanceCount';

/** Rules that every size must satisfy, in addition to the layout of its library: those that use the number of hosts. */
const SIZE_RULES = ['training/global-batch', 'training/builtin-layout', 'compute/spare-hosts'];

/**
 * The numbers of instances with which an elastic run may start, largest first; empty for a run that is not elastic. The global batch does
 * not change, so a size is valid if the micro-batches divide it and the degrees of the layout divide the ranks. If there are many, eight
 * with approximately equal ratios.
 */
export function elasticSizes(run: RunSpec): number[] {
  const { elastic } = run.compute;
  if (!elastic || elastic.min > elastic.max) return [];
  const all = Array.from({ length: elastic.max - elastic.min + 1 }, (_, i) => elastic.max - i);
  return spread(all.filter((count) => isPossible(onInstances(run, count))));
}

function isPossible(run: RunSpec): boolean {
  const strategy = findStrategy(run);
  if (strategy && run.code.builtin === 'builtin' && !strategy.layout(run)) return false;
  const rules = [...TRAINING_RULES, ...BUILTIN_LAYOUT_RULES, ...SPARE_RULES].filter(({ id }) =>
    SIZE_RULES.includes(id),
  );
  return rules.every(
    (rule) => rule.level !== 'error' || rule.check(run, {}).every((found) => found.level === 'warning'),
  );
}

/** The largest and the smallest size, and sizes between them with approximately equal ratios. */
function spread(sizes: readonly number[]): number[] {
  const [most = 1, least = 1] = [sizes[0], sizes.at(-1)];
  if (sizes.length <= MAX_SIZES) return [...sizes];
  const wanted = Array.from({ length: MAX_SIZES }, (_, i) => most * (least / most) ** (i / (MAX_SIZES - 1)));
  const nearest = wanted.map((want) =>
    sizes.reduce((best, size) => (Math.abs(size - want) < Math.abs(best - want) ? size : best)),
  );
  return [...new Set(nearest)];
}

/** The rules apply only to elastic runs. */
export const ELASTIC_RULES: readonly Rule[] = [
  rule('compute/elastic', 'error', ({ kind, compute, distribution, code }) => {
    const { elastic } = compute;
    const got = elastic && `${elastic.min}-${elastic.max}`;
    const isCounted = compute.alternatives.some((a) => a.instanceCount !== undefined);
    return [
      ...when(kind !== 'training', path, {
        must: 'must be one number in a processing run',
        got,
        fix: 'use one number',
      }),
      ...when(elastic !== undefined && elastic.min > elastic.max, `${path}.min`, {
        must: `must be at most max ${elastic?.max}`,
        got: elastic?.min,
        fix: 'swap them',
      }),
      ...when(compute.instanceGroups.length > 0, path, {
        must: 'must not be given with instanceGroups',
        got,
        fix: 'use instanceType with instanceCount',
      }),
      ...when(isCounted, 'compute.alternatives', {
        must: 'must not have their own counts when compute.instanceCount is {min, max}',
        got: compute.alternatives.map((a) => a.instanceCount),
        fix: 'remove instanceCount from the alternatives',
      }),
      ...when(code.builtin === 'builtin' && !RESHARDS.includes(distribution.library), path, {
        must: `must be one number with ${distribution.library}, whose checkpoints can only be loaded with the same number of ranks`,
        got,
        fix: 'use one number, or distribution.library fsdp',
      }),
    ];
  }),
  rule('compute/elastic-checkpoints', 'error', ({ checkpoints: { mode }, compute: { elastic } }) =>
    when(mode === 'none', 'checkpoints.mode', {
      must: 'must not be none when compute.instanceCount is {min, max}: the next size continues from a checkpoint',
      got: `none with ${elastic?.min}-${elastic?.max}`,
      fix: 'set checkpoints, or use one number',
    }),
  ),
  rule('compute/elastic-sizes', 'error', (run) => {
    const { elastic } = run.compute;
    const found = elasticSizes(run);
    if (!elastic || elastic.min > elastic.max) return [];
    return when(found.length < 2 || found[0] !== elastic.max, path, {
      must: `must allow its max and a smaller size with the same global batch size (allowed between ${elastic.min} and ${elastic.max}: ${found.join(', ') || 'none'})`,
      got: `{ min: ${elastic.min}, max: ${elastic.max} }`,
      fix: 'change min or max, microBatchSize or globalBatchSize; or use one number',
    });
  }),
  rule('compute/elastic-own-code', 'error, may acknowledge', ({ code, compute: { elastic } }) =>
    when(code.builtin === undefined, path, {
      must: 'must be used with code whose checkpoints can be loaded with any number of ranks, and which keeps its global batch size',
      got: `custom code with ${elastic?.min}-${elastic?.max}`,
      fix: 'acknowledge compute/elastic-own-code with a description of how it does this, or use one number',
    }),
  ),
].map(ruleWhere(({ compute }) => compute.elastic !== undefined));
