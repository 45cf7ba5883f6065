import { strategy } from './strategy';
import { torchrunHyperparameters } from './torchrun';

/** Hugging Face images under torchrun; SMP v1 and SMDDP on them are served by those strategies. */
export const huggingface = strategy({
  name: 'huggingface',
  summary: 'Hugging Face training images by transformers version, toolkit contract',
  libraries: ['custom'],
  matches: (library, launcher, _collectives, image) =>
    library === 'custom' && launcher === 'torchrun' && image === 'huggingface',
  hyperparameters: torchrunHyperparameters,
});
