import { strategy } from './strategy';
import { smddpEnvironment, torchrunHyperparameters } from './torchrun';

/** PyTorch DistributedDataParallel under torchrun. */
export const ddp = strategy({
  name: 'ddp',
  libraries: ['ddp'],
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
});
