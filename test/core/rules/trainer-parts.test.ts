import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test } from 'vitest';
import { findModel, MODEL_NAMES } from '../../../lib/core/catalog/models';
import { partsBeyondLlama, untrainedParts } from '../../../lib/core/rules/model/builtin-model';

interface Verdict {
  refused: string[];
  parts: string[];
}

const SHAPES = MODEL_NAMES.flatMap((name) => {
  const shape = findModel(name);
  return shape ? [{ name, shape }] : [];
});
const VERDICTS: Verdict[] = JSON.parse(
  execFileSync('python3', [path.join(__dirname, '../../support/trainer_parts.py')], {
    input: JSON.stringify(SHAPES.map(({ shape }) => shape)),
    encoding: 'utf8',
  }),
);

test.each(SHAPES.map((one, i) => ({ ...one, verdict: VERDICTS[i] as Verdict })))(
  'rules and trainer name the same parts of $name',
  ({ shape, verdict }) => {
    expect(untrainedParts(shape).length > 0, verdict.refused.join()).toBe(verdict.refused.length > 0);
    if (verdict.refused.length === 0) expect(partsBeyondLlama(shape).sort()).toEqual(verdict.parts.sort());
  },
);

test.each([
  'gpt-oss-20b',
  'gpt-oss-120b',
  'deepseek-v2',
  'deepseek-v2-lite',
  'deepseek-v3',
  'kimi-k2',
  'llama4-scout',
  'llama4-maverick',
  'qwen1.5-moe-a2.7b',
  'qwen3-30b-a3b',
])('the trainer takes %s', (name) => {
  const shape = findModel(name);
  if (!shape) throw new Error(`${name}: must be a preset`);
  expect(untrainedParts(shape)).toEqual([]);
});
