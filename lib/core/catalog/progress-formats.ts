/**
 * Values of `progress.format`: outputs in which the driver finds steps and losses (containers/driver/slipway_driver/progress_formats.py).
 * `auto` takes the first one that a line of the output has.
 */
export const PROGRESS_FORMATS = [
  'auto',
  'transformers',
  'axolotl',
  'llama-factory',
  'torchtitan',
  'lightning',
  'megatron',
  'nemo',
  'deepspeed',
  'verl',
  'none',
] as const;

export type ProgressFormat = (typeof PROGRESS_FORMATS)[number];

/** How a trainer saves, and how it is told to go on. */
export interface TrainerCheckpoints {
  /** What the trainer writes last into a checkpoint, as `checkpoints.committedMarker`, below the folder that it is given for its output. */
  marker: string;
  /**
   * Words that make it resume. `{checkpoint}` is the folder of the checkpoint, `{parent}` the folder above it, `{marker}` the file itself.
   * @default - it looks into its own folder
   */
  argument?: readonly string[];
  /** Regular expression for the text of programs that take these words; others would refuse an argument that they do not know. */
  takenBy?: string;
}

/** In either order: a script may define its parser below the function that uses it. */
const [HF_PARSER, RESUME] = ['(?:HfArgumentParser|TrlParser)', 'resume_from_checkpoint'];
const BY_TRAINER = {
  marker: 'checkpoint-*/trainer_state.json',
  argument: ['--resume_from_checkpoint', '{checkpoint}'],
};

/**
 * Name of a marker beside checkpoints, whose text is the name of the folder that was finished last. It is the step of that folder that counts.
 */
export const NAMES_NEWEST = 'latest';

/**
 * Checkpoints of the formats, read in the packages of PyPI on 2026-11-27. Not here: NeMo, which has no file in a checkpoint that is written
 * last.
 */
export const TRAINER_CHECKPOINTS: Readonly<Partial<Record<ProgressFormat, TrainerCheckpoints>>> = {
  // transformers 4.57.1 and 5.23.0, Trainer._save_checkpoint. trl 1.16.0 passes the argument on, trl 0.23.0 does not (trl/scripts/sft.py).
  transformers: {
    ...BY_TRAINER,
    takenBy: `["']--resume_from_checkpoint["']|${HF_PARSER}(?:.|\\n)*${RESUME}|${RESUME}(?:.|\\n)*${HF_PARSER}`,
  },
  // axolotl 0.19.0, cli/config_options.py and train.py: transformers' Trainer.
  axolotl: { ...BY_TRAINER, argument: ['--resume-from-checkpoint', '{checkpoint}'], takenBy: '\\baxolotl\\b' },
  // llamafactory 0.9.5, hparams/parser.py: behind a YAML file, arguments are KEY=VALUE; transformers' Trainer.
  'llama-factory': {
    ...BY_TRAINER,
    argument: ['resume_from_checkpoint={checkpoint}'],
    takenBy: '\\bllamafactory(?:-cli)?\\b[^\\n]*\\.(?:ya?ml|json)\\b',
  },
  // torchtitan 0.2.2 and 0.3.0, CheckpointManager._find_load_step: it loads the newest step of its folder that has this file.
  torchtitan: { marker: 'checkpoint/step-*/.metadata' },
  // lightning 2.5.0 and 2.6.0, fabric/utilities/cloud_io.py: one file, put in place when it is complete; pytorch/cli.py.
  lightning: {
    marker: '*.ckpt',
    argument: ['--ckpt_path={marker}'],
    takenBy: '["\']--ckpt_path["\']|\\bLightningCLI\\b',
  },
  // megatron-core 0.16.1, dist_checkpointing/serialization.py: metadata.json is written once a checkpoint is finalised.
  megatron: { marker: 'iter_*/metadata.json', argument: ['--load', '{parent}'], takenBy: '\\bmegatron\\.training\\b' },
  // deepspeed 0.19.8, runtime/engine.py, save_checkpoint: written when all ranks have saved; load_checkpoint reads it itself.
  deepspeed: { marker: NAMES_NEWEST },
  // verl 0.9.1, trainer/ppo/ray_trainer.py: the state of the data is written after the models.
  verl: {
    marker: 'global_step_*/data.pt',
    argument: ['trainer.resume_mode=resume_path', 'trainer.resume_from_path={checkpoint}'],
    takenBy: '\\bverl\\.trainer\\b',
  },
};

/**
 * Regular expressions for the step in the path of a marker. The first that is found counts: the number after the word `step`, after
 * `checkpoint` (if no further number follows), after a word for iterations, the last of several with `_` between them (epoch and step), and
 * the first number.
 */
export const STEP_IN_PATH = [
  'step[-_=]?([0-9]+)',
  '(?:checkpoint|ckpt)[-_=]?([0-9]+)(?![0-9]*[-_][0-9])',
  '(?:^|[^A-Za-z])(?:iter|iteration|batch|ba|update)[-_=]?([0-9]+)',
  '^[^0-9/]*[0-9]+(?:_[0-9]+)*_([0-9]+)(?:[.][A-Za-z]+)?(?:/|$)',
  '([0-9]+)',
] as const;
