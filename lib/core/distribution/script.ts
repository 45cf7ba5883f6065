import { strategy } from './strategy';

/** Custom code that is started once per host and distributes its work itself. */
export const script = strategy({
  name: 'script',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher) => launcher === 'script' && !library.startsWith('smp-'),
});
