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
