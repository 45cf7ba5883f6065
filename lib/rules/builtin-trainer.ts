import { type Rule, trainingRule, when } from './rule';

const RULES: readonly Rule[] = [
  {
    id: 'training/lora',
    level: 'error',
    what: 'training.lora is for the built-in trainer, with weights to start from.',
    why: 'Own code would ignore it; adapters of random weights are of no use.',
    source: 'contract/run.example.yaml',
    check: (run) => {
      if (!run.training.lora) return [];
      return [
        ...when(run.code.builtin !== 'builtin', {
          path: 'training.lora',
          level: 'warning',
          must: 'must go with the built-in trainer',
          got: 'own code',
          fix: 'remove it, or use source: builtin',
        }),
        ...when(run.code.builtin === 'builtin' && !run.model?.weights && !run.checkpoints.startFrom, {
          path: 'training.lora',
          must: 'must go with model.weights or checkpoints.startFrom',
          fix: 'add model.weights',
        }),
      ];
    },
  },
  {
    id: 'training/builtin-library',
    level: 'error',
    what: 'The built-in trainer runs fsdp, smp-v2 or deepspeed.',
    why: 'It has no other backend.',
    source: 'containers/trainer',
    check: (run) =>
      when(run.code.builtin === 'builtin' && !['fsdp', 'smp-v2', 'deepspeed'].includes(run.distribution.library), {
        path: 'distribution.library',
        must: 'must be fsdp, smp-v2 or deepspeed for the built-in trainer',
        got: run.distribution.library,
        fix: 'use fsdp, or own code',
      }),
  },
  {
    id: 'training/builtin-data',
    level: 'error',
    what: 'The built-in trainer reads tokens from a channel called train.',
    why: 'It has nothing to train on otherwise.',
    source: 'containers/README.md',
    check: (run) =>
      when(run.code.builtin === 'builtin' && !run.data.some((c) => c.channel === 'train'), {
        path: 'data',
        must: 'must have a channel train for the built-in trainer',
        got: run.data.map((c) => c.channel),
        fix: 'add - { channel: train, s3: "s3://{dataBucket}/tokens/" }',
      }),
  },
];

/** What the built-in trainer can do, and what goes with it alone. */
export const BUILTIN_TRAINER_RULES: readonly Rule[] = RULES.map(trainingRule);
