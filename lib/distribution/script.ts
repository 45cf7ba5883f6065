import { strategy } from './strategy';

export const script = strategy({
  name: 'script',
  summary: 'the entry point once per host, without a launcher',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher) => launcher === 'script' && !library.startsWith('smp-'),
});
