// Modules that predict further tokens, as DeepSeek-V3's files and their description publish them.
import { expect, test } from 'vitest';
import { activeParameterCount, parameterCount, parameterShape } from '../../../lib/core/catalog/model/parameters';
import { findModel } from '../../../lib/core/catalog/models';
import { headsOf, modelFlopsPerToken, stageBlocks } from '../../../lib/core/planner/model-size';
import { LLAMA_8B, layout, planOf } from '../../support/layouts';

const v3 = findModel('deepseek-v3');
if (!v3) throw new Error('the catalog has DeepSeek-V3');
const [without, one] = [parameterShape(v3), parameterShape({ ...v3, mtpLayers: 1 })];

test('the module of DeepSeek-V3 has the parameters that its files have', () => {
  // 685B with the 14B of the module, which repeat embedding and head; 1.5B active with the head's 0.9B
  // (https://github.com/deepseek-ai/DeepSeek-V3, README.md and README_WEIGHTS.md, 2026-11-23).
  expect(Math.abs((parameterCount(one) + 2 * 129280 * 7168) / 685e9 - 1)).toBeLessThan(0.001);
  expect((activeParameterCount(one) - activeParameterCount(without) + 129280 * 7168) / 1e9).toBeCloseTo(1.5, 0);
  expect(stageBlocks(one)).toBe(61);
});

test('a token meets the blocks of the modules, their joining matrices, and the head once more for each', () => {
  const architecture = { layers: 32, hiddenSize: 4096, attentionHeads: 32, kvHeads: 8, ffnHiddenSize: 14336 };
  const model = { ...architecture, vocabularySize: 128256, gatedMlp: true, tiedEmbeddings: false, ropeTheta: 1e4 };
  const [before, after] = [parameterShape(model), parameterShape({ ...model, mtpLayers: 2 })];
  const block = 4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 14336;
  const more = modelFlopsPerToken(after, 8192) - modelFlopsPerToken(before, 8192);
  const expected = 2 * (6 * (block + 2 * 4096 ** 2 + 128256 * 4096) + 12 * 4096 * 8192);
  expect(more / expected).toBeCloseTo(1, 3);
  expect(headsOf(after)).toBe(3);
});

test('they cost time and memory, and the interval says that nobody has measured them', () => {
  const kinds = [
    { layers: 32, block: LLAMA_8B },
    { layers: 1, block: { ...LLAMA_8B, small: 2 * 4096 ** 2 } },
  ];
  const [before, after] = [layout(), layout({ model: { ...LLAMA_8B, layers: 33, mtpLayers: 1, kinds } })].map(planOf);
  if (!before || !after) throw new Error('both are planned');
  expect(after.tokensPerSecondPerGpu / before.tokensPerSecondPerGpu).toBeLessThan(32 / 33);
  expect(after.memoryGiB.parameters).toBeGreaterThan(before.memoryGiB.parameters);
  expect(after.memoryGiB.logits).toBeCloseTo(2 * before.memoryGiB.logits, 5);
  const width = ({ interval80: [low, high] }: typeof before) => Math.log(high / low);
  expect(width(after)).toBeGreaterThan(width(before) + 0.15);
});
