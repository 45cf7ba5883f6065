import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

const COUNT = 'samples';
/** Arguments for samples, with the trainer's defaults. */
const DEFAULTS = { 'sample-tokens': 64, 'sample-prompt-tokens': 32, 'sample-tokenizer': '' } as const;

const path = (name: string): string => `code.arguments.${name}`;

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function sampleFindings({ code, distribution, training }: RunSpec): Finding[] {
  const got = code.arguments[COUNT];
  if (!(Number(got) > 0)) return [];
  const prompt = code.arguments['sample-prompt-tokens'] ?? DEFAULTS['sample-prompt-tokens'];
  const tokens = code.arguments['sample-tokens'] ?? DEFAULTS['sample-tokens'];
  const { sequenceLength = Number.POSITIVE_INFINITY, objective = 'pretrain' } = training;
  const remaining = sequenceLength - (objective === 'pretrain' ? Number(prompt) : 1);
  return [
    ...when(distribution.library === 'smp-v2', {
      path: path(COUNT),
      must: 'must be 0 with smp-v2',
      got,
      fix: 'remove it',
    }),
    ...when(remaining < 1, {
      path: path('sample-prompt-tokens'),
      must: `must be less than sequenceLength ${sequenceLength}`,
      got: prompt,
      fix: 'use a smaller number',
    }),
    ...when(remaining >= 1 && Number(tokens) > remaining, {
      path: path('sample-tokens'),
      must: `must be 1 to ${remaining}, what sequenceLength ${sequenceLength} leaves`,
      got: tokens,
      fix: 'use a smaller number',
    }),
  ];
}

/** Rules for sample generations of the built-in trainer. */
export const SAMPLE_RULES: readonly Rule[] = [
  {
    id: 'training/samples',
    level: 'error',
    what: 'A prompt and its continuation fit into sequenceLength, and samples require another library than smp-v2.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: (run: RunSpec) => (run.code.builtin === 'builtin' ? sampleFindings(run) : []),
  } satisfies Rule,
  {
    id: 'training/samples-unused',
    level: 'warning',
    what: 'sample-tokens, sample-prompt-tokens and sample-tokenizer require samples.',
    why: 'Without samples, no text is generated.',
    source: 'containers/trainer',
    check: ({ code }: RunSpec) =>
      code.builtin !== 'builtin' || Number(code.arguments[COUNT] ?? 0) !== 0
        ? []
        : Object.keys(DEFAULTS).flatMap((name) =>
            when(code.arguments[name] !== undefined, {
              path: path(name),
              must: `must be used with ${COUNT}`,
              got: code.arguments[name],
              fix: `add ${COUNT}, or remove it`,
            }),
          ),
  } satisfies Rule,
].map(trainingRule);
