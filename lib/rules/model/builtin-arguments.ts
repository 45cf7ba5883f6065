import { BUILTIN_ARGUMENTS, refusedValue } from '../../catalog/builtin-arguments';
import { nearest } from '../../catalog/nearest';
import { orList } from '../../spec/issue';
import type { RunSpec } from '../../spec/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

const path = (name: string): string => `code.arguments.${name}`;

/** Findings for arguments that built-in code does not know, and for values that it does not take. */
function argumentFindings({ code }: RunSpec): Finding[] {
  if (!code.builtin) return [];
  const known = BUILTIN_ARGUMENTS[code.builtin];
  return Object.entries(code.arguments).flatMap(([name, given]): Finding[] => {
    const kind = known[name];
    if (!kind) {
      const fix = `use ${orList(nearest(name, Object.keys(known)))}, or remove it`;
      return [{ path: path(name), must: `must be an argument of ${code.source}`, got: name, fix }];
    }
    const refused = refusedValue(kind, given);
    return refused ? [{ path: path(name), ...refused, fix: 'correct or remove it' }] : [];
  });
}

/** Layers are recomputed in groups only by FSDP, and only where all are recomputed. */
function recomputedGroups({ code, training, distribution }: RunSpec): Finding[] {
  const name = 'recompute-layers';
  const got = code.arguments[name];
  if (code.builtin !== 'builtin' || !(Number(got) > 1)) return [];
  const { library } = distribution;
  const at = { path: path(name), got, fix: 'remove it' };
  return [
    ...when(training.activationCheckpointing !== 'full', {
      ...at,
      must: 'must be 1 without activationCheckpointing full',
    }),
    ...when(library === 'smp-v2' || library === 'deepspeed', { ...at, must: `must be 1 with ${library}` }),
  ];
}

/** Rules for the arguments of built-in code. */
export const BUILTIN_ARGUMENT_RULES: readonly Rule[] = [
  {
    id: 'code/builtin-arguments',
    level: 'error',
    what: 'Built-in code receives only arguments that it supports, with values that it takes.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer/slipway_trainer/arguments.py',
    check: argumentFindings,
  },
  trainingRule({
    id: 'training/recompute-layers',
    level: 'error',
    what: 'recompute-layers above 1 requires activationCheckpointing full, and fsdp or ddp.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: recomputedGroups,
  }),
];
