import type { RunSpec } from '../spec/run-spec';
import { ddp } from './ddp';
import { deepspeed } from './deepspeed';
import { fsdp } from './fsdp';
import { huggingface } from './huggingface';
import { megatron } from './megatron';
import { mpi } from './mpi';
import { script } from './script';
import { smddp } from './smddp';
import { smpV1 } from './smp-v1';
import { smpV2 } from './smp-v2';
import type { Strategy } from './strategy';
import { torchrun } from './torchrun';

/** Every way to train, most specific first: the first that matches a run serves it. */
export const STRATEGIES: readonly Strategy[] = [
  smpV1,
  smpV2,
  smddp,
  mpi,
  script,
  fsdp,
  ddp,
  deepspeed,
  megatron,
  huggingface,
  torchrun,
];

/** Values of `distribution.library`. */
export const LIBRARIES: readonly string[] = [...new Set(STRATEGIES.flatMap((s) => s.libraries))];

/** The strategy that serves `run`; undefined when its library is unknown (a rule says so). */
export function findStrategy(run: RunSpec): Strategy | undefined {
  const { library, launcher, collectives } = run.distribution;
  return STRATEGIES.find((s) => s.matches(library, launcher, collectives, run.image.kind));
}
