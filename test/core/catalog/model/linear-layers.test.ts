import { expect, test } from 'vitest';
import { adaptableLayers } from '../../../../lib/core/catalog/model/linear-layers';
import { parameterCount, parameterShape } from '../../../../lib/core/catalog/model/parameters';
import type { ModelShape } from '../../../../lib/core/catalog/model/shape';

const DENSE: ModelShape = {
  ...{ layers: 2, hiddenSize: 64, attentionHeads: 4, kvHeads: 2, ffnHiddenSize: 96, vocabularySize: 100 },
  ...{ gatedMlp: true, tiedEmbeddings: true },
};

test.each([1, 2])('a mixture of %i experts has a router in each layer, which adapters can name', (experts) => {
  const mixture = { ...DENSE, experts, expertsPerToken: 1 };
  expect(adaptableLayers(mixture)).toEqual([...adaptableLayers(DENSE), 'router']);
  const [dense, whole] = [DENSE, mixture].map((m) => parameterCount(parameterShape(m)));
  const expert = 3 * DENSE.hiddenSize * DENSE.ffnHiddenSize;
  expect((whole ?? 0) - (dense ?? 0)).toBe(DENSE.layers * ((experts - 1) * expert + experts * DENSE.hiddenSize));
});
