import { guide } from '../../config/formats/aws-pages';
import { type Rule, when } from '../../config/rule';
import { parameterPath } from '../parameters';
import { SMP_V2_REFERENCE, SMP_V2_RELEASE_NOTES, smpV2Rule } from './parameters';

/** Rules about activation offloading of SMP v2. */
export const SMP_V2_OFFLOAD_RULES: readonly Rule[] = [
  smpV2Rule({
    id: 'smp-v2/offload-release',
    level: 'warning',
    what: 'SMP activation offloading is disabled with SMP 2.2.0.',
    why: 'It does not work with this release; native offloading does. The same image tag has contained 2.2.0, 2.3.0 and 2.3.1.',
    source: SMP_V2_RELEASE_NOTES,
    find: (run) =>
      when(
        run.image.kind === 'smp' &&
          run.image.version === '2.2.0' &&
          run.distribution.parameters.sm_activation_offloading !== false &&
          (run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true),
        {
          path: parameterPath('sm_activation_offloading'),
          must: 'must be false on SMP 2.2.0',
          got: run.distribution.parameters.sm_activation_offloading ?? 'true (default)',
          fix: 'set it to false, or use image.version "2.5.1"',
        },
      ),
  }),
  smpV2Rule({
    id: 'smp-v2/offload-without-checkpointing',
    level: 'warning',
    what: 'Activation offloading requires activation checkpointing.',
    why: 'Offloading moves the inputs of checkpointed layers; without checkpointing it has no effect.',
    source: guide('model-parallel-core-features-v2-pytorch-activation-offloading'),
    find: (run) => {
      const requested = run.written.distribution?.parameters?.sm_activation_offloading === true;
      const checkpointing = run.written.training?.activationCheckpointing;
      return when(requested && checkpointing === 'none', {
        path: 'training.activationCheckpointing',
        must: 'must be selective or full with sm_activation_offloading',
        got: 'none',
        fix: 'use full, or switch offloading off',
      });
    },
  }),
  smpV2Rule({
    id: 'smp-v2/offload-conflict',
    level: 'error',
    what: 'training.activationOffload and sm_activation_offloading have the same value if both are set.',
    why: 'One of them would be silently ignored.',
    source: SMP_V2_REFERENCE,
    find: (run) => {
      const ours = run.written.training?.activationOffload;
      const theirs = run.written.distribution?.parameters?.sm_activation_offloading;
      return when(typeof ours === 'boolean' && typeof theirs === 'boolean' && ours !== theirs, {
        path: parameterPath('sm_activation_offloading'),
        must: `must agree with training.activationOffload ${ours}`,
        got: theirs,
        fix: 'write one of the two',
      });
    },
  }),
];
