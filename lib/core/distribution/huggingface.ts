import { strategy } from './strategy';
import { torchrun } from './torchrun';

/** torchrun in a Hugging Face image; SMP v1 and SMDDP under mpirun in these images are handled by the strategies of those libraries. */
export const huggingface = strategy({
  ...torchrun,
  name: 'huggingface',
  matches: (library, launcher, _collectives, image) =>
    library === 'custom' && launcher === 'torchrun' && image === 'huggingface',
});
