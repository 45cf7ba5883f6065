import { expect, test } from 'vitest';
import { accelerators } from '../../../../lib/core/catalog/instances/accelerated-instances';
import { nearestPublished } from '../../../../lib/core/planner/run/nearest-published';
import { layout } from '../../../support/layouts';

const llama8b = layout({ sequence: 8192 });

test('names the fastest published run of the same model on the same GPU', () => {
  expect(nearestPublished(llama8b)).toMatchObject({
    name: expect.stringContaining('Llama 3 8B'),
    gpu: 'H100-80GB',
    precision: 'bf16',
    source: expect.stringMatching(/^https:/),
  });
});

test('scales the speed of another model by the parameters that a token meets', () => {
  const found = nearestPublished({ ...llama8b, model: { ...llama8b.model, layers: 16 } });
  expect(found?.forThisModel).toBeGreaterThan(1.5 * (found?.tokensPerSecondPerGpu ?? 0));
});

test.each([
  ['a model of a fiftieth of the size', { model: { ...llama8b.model, layers: 1, vocabulary: 1000 } }],
  ['a GPU of another generation without published runs', { accelerator: accelerators(8, 'L40S-48GB') }],
  ['adapters', { adapters: 1e6 }],
  ['32-bit products', { precision: 'fp32' as const }],
])('names none for %s', (_, changed) => {
  expect(nearestPublished({ ...llama8b, ...changed } as never)).toBeUndefined();
});

test('compares mixtures with mixtures alone', () => {
  const mixture = { ...llama8b.model, experts: 64, expertsPerToken: 2, ffn: 1024 };
  expect(nearestPublished({ ...llama8b, model: mixture, precision: 'fp8' })?.method).toBe('experts');
});
