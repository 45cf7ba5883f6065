import { strategy } from './strategy';
import { smddpEnvironment, torchrunHyperparameters } from './torchrun';

/** PyTorch DistributedDataParallel under torchrun. */
export const ddp = strategy({
  name: 'ddp',
  summary: 'PyTorch DistributedDataParallel under torchrun: a whole copy of the model on every rank',
  libraries: ['ddp'],
  matches: (library, launcher) => library === 'ddp' && launcher === 'torchrun',
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
});
