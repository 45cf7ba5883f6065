import { nearest } from '../../catalog/nearest';
import { orList } from '../../spec/issue';
import type { RunSpec } from '../../spec/run-spec';
import { builtinOnly } from '../own-code';
import { type Rule, trainingRule, when } from '../rule';

/**
 * Layers of a mixture that are not linear layers in transformers 5, which stores all experts in one tensor and has its own router: PEFT
 * 0.21 gives them no adapter, or a different one (test/containers/test_adapter_families.py).
 */
const EXPERT_LAYERS = ['gate_proj', 'up_proj', 'down_proj', 'router'];

const exportsAdapter = (run: RunSpec) =>
  run.code.builtin === 'builtin' && run.code.arguments['export-adapter'] === true;

/** Whether the adapters include layers of a mixture that PEFT does not adapt. */
function adaptsExperts(run: RunSpec): boolean {
  return (
    run.model?.architecture?.experts !== undefined &&
    EXPERT_LAYERS.some((layer) => run.training.lora?.targets.includes(layer))
  );
}

const RULES: readonly Rule[] = [
  {
    id: 'training/lora',
    level: 'error',
    what: 'training.lora requires the built-in trainer and pretrained weights.',
    why: 'User code would ignore it, and adapters on random weights are useless.',
    source: 'docs/reference/run-file.md',
    check: (run) => {
      if (!run.training.lora) {
        return when(exportsAdapter(run), {
          path: 'code.arguments.export-adapter',
          must: 'must be used with training.lora',
          fix: 'remove it, or use export-weights',
        });
      }
      return [
        ...when(run.code.builtin !== 'builtin', builtinOnly('training.lora')),
        ...when(run.code.builtin === 'builtin' && !run.model?.weights && !run.checkpoints.startFrom, {
          path: 'training.lora',
          must: 'must be used with model.weights or checkpoints.startFrom',
          fix: 'add model.weights',
        }),
        ...when(exportsAdapter(run) && adaptsExperts(run), {
          path: 'code.arguments.export-adapter',
          must: 'must be left out where training.lora.targets names experts or the router',
          got: run.training.lora.targets.join(', '),
          fix: 'use export-weights, or adapters of attention only',
        }),
      ];
    },
  },
  {
    id: 'training/builtin-library',
    level: 'error',
    what: 'The built-in trainer supports fsdp, smp-v2 and deepspeed.',
    why: 'It has no other backends.',
    source: 'containers/trainer',
    check: (run) =>
      when(run.code.builtin === 'builtin' && !['fsdp', 'smp-v2', 'deepspeed'].includes(run.distribution.library), {
        path: 'distribution.library',
        must: 'must be fsdp, smp-v2 or deepspeed for the built-in trainer',
        got: run.distribution.library,
        fix: 'use fsdp, or custom code',
      }),
  },
  {
    id: 'training/builtin-data',
    level: 'error',
    what: 'The built-in trainer reads tokens from the channel train, from the channel in the argument data-channel, or from the channels of training.mixture.',
    why: 'Otherwise it has no training data.',
    source: 'containers/README.md',
    check: (run) => {
      const channel = run.code.arguments['data-channel'] ?? 'train';
      return when(
        run.code.builtin === 'builtin' && !run.training.mixture && !run.data.some((c) => c.channel === channel),
        {
          path: 'data',
          must: `must have a channel ${channel} for the built-in trainer`,
          got: run.data.map((c) => c.channel),
          fix: `add - { channel: ${channel}, s3: "s3://{dataBucket}/tokens/" }`,
        },
      );
    },
  },
];

/** Arguments of the built-in code, without dashes: containers/trainer/slipway_trainer/arguments.py and tokenize/__main__.py. */
export const BUILTIN_ARGUMENTS: Readonly<Record<NonNullable<RunSpec['code']['builtin']>, readonly string[]>> = {
  builtin: [
    'learning-rate',
    'minimum-learning-rate-ratio',
    'warmup-steps',
    'schedule',
    'decay-share',
    'weight-decay',
    'beta1',
    'beta2',
    'adam-epsilon',
    'clip-norm',
    'z-loss',
    'mtp-loss',
    'balance-loss',
    'balance-loss-over',
    'router-z-loss',
    'routing-bias-rate',
    'beta',
    'data-channel',
    'eval-channel',
    'eval-every-steps',
    'eval-batches',
    'log-every-steps',
    'save-every-steps',
    'samples',
    'sample-tokens',
    'sample-prompt-tokens',
    'sample-tokenizer',
    'loss-spike-factor',
    'loss-policy',
    'loss-chunks',
    'minimum-step-seconds',
    'collective-timeout-seconds',
    'steady-timeout-seconds',
    'tensorboard',
    'mlflow',
    'wandb',
    'profile',
    'profile-after-steps',
    'profile-steps',
    'recompute-layers',
    'backend',
    'host-check-seconds',
    'export-weights',
    'export-adapter',
  ],
  'builtin-tokenize': [
    'tokenizer',
    'end-of-text',
    'chat-template',
    'train-on',
    'shard-tokens',
    'text-key',
    'data-channel',
  ],
};

/** The trainer also rejects an unknown argument, but only after its instances have started. */
const BUILTIN_ARGUMENTS_RULE: Rule = {
  id: 'code/builtin-arguments',
  level: 'warning',
  what: 'Built-in code receives only arguments that it supports.',
  why: 'It exits at the start on an unknown argument, so that misspelled names are noticed.',
  source: 'containers/README.md',
  check: ({ code }) => {
    const known = code.builtin ? BUILTIN_ARGUMENTS[code.builtin] : Object.keys(code.arguments);
    return Object.keys(code.arguments)
      .filter((key) => !known.includes(key))
      .map((key) => ({
        path: `code.arguments.${key}`,
        must: `must be an argument of ${code.source}`,
        got: key,
        fix: `use ${orList(nearest(key, known))}, or remove it`,
      }));
  },
};

/** Rules for the capabilities of the built-in trainer, and for options that only it reads. */
export const BUILTIN_TRAINER_RULES: readonly Rule[] = [...RULES.map(trainingRule), BUILTIN_ARGUMENTS_RULE];
