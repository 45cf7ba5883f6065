import { SMDDP_INSTANCE_TYPES } from '../../catalog/images/smddp';
import { modelParameters } from '../../catalog/model/parameters';
import { hostCount, trainingGroupsOf } from '../../config/resolve-run';
import { type Rule, when } from '../../config/rule';
import { parameterPath } from '../parameters';
import { trainingInstanceTypes } from '../strategy';
import { smpV2Rule } from './parameters';

/** From this size on, the initialised weights of all ranks no longer fit into host memory. */
const DELAYED_INIT_PARAMETERS = 60e9;
/** Thresholds, in tokens, for a sequence that AWS calls long, and for a batch that harms convergence. */
const LONG_SEQUENCE = 8192;
const LARGE_BATCH_TOKENS = 4e6;

/** AWS's best practices for SMP v2, in AWS's order. All are informational. */
export const SMP_V2_ADVICE: readonly Rule[] = [
  smpV2Rule('smp-v2/advice-precision', 'info, may acknowledge', ({ training: { precision } }) =>
    when(precision === 'fp32' || precision === 'fp16', 'training.precision', {
      must: 'is best bf16',
      fix: 'use bf16',
    }),
  ),
  smpV2Rule('smp-v2/advice-collectives', 'info, may acknowledge', (run, { shard, tensor }) => {
    const served = trainingInstanceTypes(run).every((type) => SMDDP_INSTANCE_TYPES.includes(type));
    const excluded = shard === 1 && tensor > 1;
    return when(
      served && hostCount(trainingGroupsOf(run)) > 1 && !excluded && run.distribution.collectives === 'nccl',
      'distribution.collectives',
      {
        must: 'is best smddp on several ml.p4d or ml.p4de',
        fix: 'try smddp, with init_process_group("smddp") before torch.sagemaker.init()',
      },
    );
  }),
  smpV2Rule('smp-v2/advice-delayed-init', 'info, may acknowledge', (run) => {
    const parameters = run.model ? modelParameters(run.model.architecture) : 0;
    return when(!run.code.builtin && parameters > DELAYED_INIT_PARAMETERS, 'model', {
      must: 'is best initialised with delay (DelayedParamIniter) in the script',
      got: `${Math.round(parameters / 1e9)} billion parameters`,
      fix: 'build the model on the meta device',
    });
  }),
  smpV2Rule('smp-v2/advice-checkpointing', 'info, may acknowledge', ({ written }) =>
    when(written.training?.activationCheckpointing === 'none', 'training.activationCheckpointing', {
      must: 'is best selective or full with SMP',
      fix: 'use full',
    }),
  ),
  smpV2Rule('smp-v2/advice-shard-degree', 'info, may acknowledge', (run, { shard, tensor, expert, world }) => {
    const offloads = run.training.activationOffload || run.distribution.parameters.sm_activation_offloading === true;
    const isWhole = world > run.distribution.processesPerHost && Math.max(1, shard) * tensor * expert === world;
    return when(isWhole && !offloads, parameterPath('hybrid_shard_degree'), {
      must: 'is best the lowest degree that fits',
      got: `${shard}, every rank`,
      fix: 'try a lower one, or sm_activation_offloading first',
    });
  }),
  smpV2Rule(
    'smp-v2/advice-tensor',
    'info, may acknowledge',
    ({ training: { sequenceLength, microBatchSize = 1 } }, { tensor, context, world }) => {
      const without = (world / context) * microBatchSize * (sequenceLength ?? 0);
      const isNeeded = sequenceLength === undefined || sequenceLength >= LONG_SEQUENCE || without > LARGE_BATCH_TOKENS;
      return when(tensor > 1 && !isNeeded, parameterPath('tensor_parallel_degree'), {
        must: 'is best 1 below a context of 8192 and a batch of 4 million tokens',
        fix: 'use 1 if the model fits without it',
      });
    },
  ),
];
