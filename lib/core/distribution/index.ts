import type { RunSpec } from '../config/run-spec';
import { deepspeed } from './deepspeed';
import { fsdp } from './fsdp';
import { megatron } from './megatron';
import { ray } from './ray';
import { smddp } from './smddp';
import { smpV1 } from './smp-v1';
import { smpV2 } from './smp-v2';
import type { Strategy } from './strategy';
import { ddp, mpi, script, torchrun } from './torchrun';

/** All distribution strategies. Every run is handled by exactly one of them, so the order only decides how libraries are listed. */
export const STRATEGIES: readonly Strategy[] = [
  ddp,
  deepspeed,
  fsdp,
  torchrun,
  megatron,
  mpi,
  ray,
  script,
  smddp,
  smpV1,
  smpV2,
];

/** Values of `distribution.library`. */
export const LIBRARIES: readonly string[] = [...new Set(STRATEGIES.flatMap((s) => s.libraries))];

/** The strategy that handles `run`; undefined when its library is unknown (a rule reports it). */
export function findStrategy(run: RunSpec): Strategy | undefined {
  const { library, launcher, collectives } = run.distribution;
  return STRATEGIES.find((s) => s.matches(library, launcher, collectives));
}
