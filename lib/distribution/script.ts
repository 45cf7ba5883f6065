import { strategy } from './strategy';

/** Own code that is started once on each host and distributes by itself. */
export const script = strategy({
  name: 'script',
  summary: 'the entry point once per host, without a launcher',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher) => launcher === 'script' && !library.startsWith('smp-'),
});
