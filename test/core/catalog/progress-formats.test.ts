import fc from 'fast-check';
import { expect, test } from 'vitest';
import { STEP_IN_PATH } from '../../../lib/core/catalog/progress-formats';

const stepOf = (path: string): number =>
  Number(STEP_IN_PATH.map((each) => new RegExp(each).exec(path)?.[1]).find(Boolean) ?? 0);

test.each<[source: string, path: string, step: number]>([
  ['mosaicml/composer#2146', 'ep0-ba1000-rank0.pt', 1000],
  ['zylo117/Yet-Another-EfficientDet-Pytorch#686', 'efficientdet-d0_3_1500.pth', 1500],
  ['modelscope/ms-swift#4366', 'v0-20250526-162705/checkpoint-3000/trainer_state.json', 3000],
  ['NVIDIA-NeMo/Automodel#603', 'epoch_0_step_20/config.json', 20],
  ['a date is no step', '2026-11-28/ckpt-5/done', 5],
  ['a part is no step', 'ckpt-500/part_0_3.pt', 500],
  ['a loss is no step', 'epoch_3_0.415.ckpt', 3],
  ['Lightning', 'lightning_logs/version_3/checkpoints/epoch=1-step=4096.ckpt', 4096],
  ['Megatron', 'iter_0000100/metadata.json', 100],
  ['no number', 'last.ckpt', 0],
])('%s: %s has step %i', (_source, path, step) => {
  expect(stepOf(path)).toBe(step);
});

/** Names of checkpoints as trainers write them, of an epoch and a step. */
const NAMES: ((epoch: number, step: number) => string)[] = [
  (epoch, step) => `ep${epoch}-ba${step}-rank0.pt`,
  (epoch, step) => `checkpoint_${epoch}_${step}.pt`,
  (epoch, step) => `model_${epoch}_${step}/done`,
  (epoch, step) => `run_${epoch}/checkpoint-${step}/trainer_state.json`,
  (epoch, step) => `epoch=${epoch}-step=${step}-loss=0.${epoch}.ckpt`,
  (epoch, step) => `ckpt_epoch${epoch}_iter${step}.pt`,
  (epoch, step) => `epoch_${epoch}_batch_${step}/done`,
  (_, step) => `iter_${String(step).padStart(7, '0')}/metadata.json`,
  (_, step) => `global_step_${step}/data.pt`,
];

test('law: the step of a checkpoint is its own number, whichever other numbers are in its name', () => {
  fc.assert(
    fc.property(fc.nat(500), fc.nat(9_999_999), fc.constantFrom(...NAMES), (epoch, step, name) => {
      expect(stepOf(name(epoch, step))).toBe(step);
    }),
  );
});
