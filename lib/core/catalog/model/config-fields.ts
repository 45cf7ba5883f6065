import { MAX_LAYERS } from './shape';

/** A problem with one key of a config.json, in the parts of an issue. */
export interface ConfigProblem {
  key: string;
  must: string;
  got?: unknown;
  fix: string;
}

/** A parsed Hugging Face config.json, not yet validated. */
export type Config = Readonly<Record<string, unknown>>;

const keysOf = (text: string): string[] => text.split(/\s+/).filter((key) => key !== '');

/** Keys that do not affect the model's shape: library metadata, generation, dropout, training settings. */
const BOOKKEEPING = new Set(
  keysOf(`_name_or_path add_cross_attention architectures attention_dropout attn_implementation attn_pdrop auto_map aux_loss_alpha
  bad_words_ids begin_suppress_tokens bos_token_id cache_implementation chunk_size_feed_forward classifier_dropout cls_token_id
  cross_attention_hidden_size decoder_start_token_id diversity_penalty do_sample dtype early_stopping embd_pdrop embedding_dropout
  embedding_initializer_range encoder_no_repeat_ngram_size eod_token_id eos_token_id ep_size exponential_decay_length_penalty
  finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing head_dropout hidden_dropout hidden_dropout_prob
  id2label im_end_id im_start_id init_std initial_context_length initializer_factor initializer_range input_jitter_noise is_decoder
  is_encoder_decoder label2id layerdrop length_penalty mask_token_id max_length max_position_embeddings max_sequence_length min_length
  model_type no_repeat_ngram_size num_assistant_tokens num_beam_groups num_beams num_return_sequences output_attentions
  output_hidden_states output_router_logits output_scores pad_token_id prefix pretraining_tp problem_type pruned_heads
  quantization_config remove_invalid_values repetition_penalty resid_pdrop residual_dropout return_dict return_dict_in_generate
  router_aux_loss_coef router_jitter_noise router_z_loss_coef scale_attention_softmax_in_fp32 attention_softmax_in_fp32 sep_token_id
  seq_aux seq_length summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj suppress_tokens
  task_specific_params temperature tf_legacy_loss tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript
  transformers_version typical_p unk_token_id use_bfloat16 use_cache use_flash_attn image_token_id vision_token_id video_token_id
  n_ctx moe_norm_min reorder_and_upcast_attn slow_but_exact init_device dropout eos_token eos_token_ids`),
);

/** Typed access to a config.json. Records problems and the keys that were read: any other key is one that the reader does not support. */
export class ConfigFields {
  readonly problems: ConfigProblem[] = [];
  /** The value that the reader took for each key, given or a default; for a key with other names, under the first one. */
  readonly taken = new Map<string, unknown>();
  /** Lists by layer that mean the same as the keys of the file: the reader takes them instead. */
  readonly lists = new Map<string, unknown[]>();
  /** Keys whose values are fractions, even where they are whole. */
  readonly fractions = new Set<string>();
  /** Other names of keys, each with the first one. */
  readonly names = new Map<string, string>();
  private readonly read = new Set<string>();

  constructor(private readonly config: Config) {}

  /** `model_type` of the file. */
  get modelType(): string {
    return typeof this.config.model_type === 'string' ? this.config.model_type : '';
  }

  /** The value of the first of `keys` that is present and not null. */
  private find(keys: readonly string[]): { key: string; value: unknown } {
    for (const key of keys) this.read.add(key);
    const [first = '', ...others] = keys;
    for (const other of others) this.names.set(other, first);
    const given = keys.filter((key) => this.config[key] !== undefined && this.config[key] !== null);
    const [key = first, other] = given;
    if (other && JSON.stringify(this.config[key]) !== JSON.stringify(this.config[other]))
      this.refuse(other, `must be equal to ${key}`, 'keep one of the two');
    return { key, value: this.config[key] ?? undefined };
  }

  /** Records what a key means, in place of the value that the file has for it. */
  take<T>(keys: string | readonly string[], value: T): T {
    const [key = ''] = typeof keys === 'string' ? [keys] : keys;
    this.taken.set(key, value);
    return value;
  }

  /** Records a problem with a key, without duplicates. */
  refuse(key: string, must: string, fix: string, got: unknown = this.config[key]): void {
    const isKnown = this.problems.some((p) => p.key === key && p.must === must && p.got === got);
    if (!isKnown) this.problems.push({ key, must, got, fix });
  }

  /** Marks keys that have no effect here, separated by white space, as read. */
  ignore(keys: string): void {
    for (const key of keysOf(keys)) this.read.add(key);
  }

  has(key: string): boolean {
    return this.config[key] !== undefined && this.config[key] !== null;
  }

  /**
   * Whether the key is present with the value `null`, which means that the model has no such part; a missing key selects the family's
   * default.
   */
  isNull(key: string): boolean {
    return this.config[key] === null;
  }

  /** Whether the value is an empty list, which is equivalent to a missing key. */
  isEmpty(key: string): boolean {
    const value = this.config[key];
    if (!Array.isArray(value) || value.length > 0) return false;
    this.ignore(key);
    return true;
  }

  /** An integer from `least` to `most` from the first of `keys` that is present. Required if there is no default. */
  count(
    keys: string | readonly string[],
    otherwise?: number,
    least = 1,
    most: number = Number.MAX_SAFE_INTEGER,
  ): number {
    const { key, value } = this.find(typeof keys === 'string' ? [keys] : keys);
    if (value === undefined && otherwise !== undefined) return this.take(keys, otherwise);
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) {
      if (value > most) this.refuse(key, `must be at most ${most}`, 'copy it from the model', value);
      return this.take(keys, Math.min(value, most));
    }
    this.refuse(key, `must be a whole number of at least ${least}`, 'copy it from the model', value);
    return otherwise ?? 1;
  }

  /** The number of layers, by default that of a list in the file. A larger number than the limit is refused, and read as the limit. */
  layers(keys: string | readonly string[] = 'num_hidden_layers', listed?: number): number {
    return this.count(keys, listed, 1, MAX_LAYERS);
  }

  /** An integer that may be missing, null or 0. */
  optionalCount(...keys: string[]): number | undefined {
    const found = this.count(keys, 0, 0) || undefined;
    this.take(keys, found ?? null);
    return found;
  }

  number(keys: string | readonly string[], otherwise: number): number {
    const listed = typeof keys === 'string' ? [keys] : keys;
    this.fractions.add(this.find(listed).key);
    return this.typed(listed, (value) => Number.isFinite(value), 'must be a number', otherwise);
  }

  /** `null` means false, because transformers tests for truthiness. */
  flag(key: string, otherwise = false): boolean {
    const usual = otherwise && !this.isNull(key);
    return this.typed([key], (value) => typeof value === 'boolean', 'must be true or false', usual);
  }

  text(key: string, otherwise: string): string {
    return this.typed([key], (value) => typeof value === 'string', 'must be text', otherwise);
  }

  private typed<T>(keys: readonly string[], isRight: (value: unknown) => boolean, must: string, otherwise: T): T {
    const { key, value = otherwise } = this.find(keys);
    if (isRight(value)) return this.take(keys, value as T);
    this.refuse(key, must, 'copy it from the model', value);
    return otherwise;
  }

  /** A text that matches `allowed`, or '' if it does not match; undefined when the value is missing or not a text. */
  letters(key: string, allowed: RegExp): string | undefined {
    const value = this.config[key];
    if (typeof value !== 'string') return undefined;
    const { value: text } = this.find([key]);
    if (allowed.test(value)) return String(text);
    this.refuse(key, `must match ${allowed.source}`, 'copy it from the model', value);
    return '';
  }

  /** A list with one entry per layer; undefined when missing. It may have `further` entries for prediction modules, which are left out. */
  perLayer(key: string, layers: number, further = 0): unknown[] | undefined {
    const { value } = this.find([key]);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && [layers, layers + further].includes(value.length)) return value.slice(0, layers);
    const got = Array.isArray(value) ? `${value.length} entries` : value;
    this.refuse(
      key,
      `must have one entry for each of the ${layers} layers`,
      'correct the list or the number of layers',
      got,
    );
    return undefined;
  }

  /** A list with one of `allowed` per layer; undefined when missing. */
  perLayerOf(
    key: string,
    layers: number,
    allowed: readonly (string | number)[],
    fix = 'correct the list',
  ): unknown[] | undefined {
    const given = this.perLayer(key, layers);
    const unknown = given?.find((each) => !(allowed as readonly unknown[]).includes(each));
    if (unknown !== undefined) this.refuse(key, `must be of ${allowed.join(', ')}`, fix, unknown);
    return given;
  }

  /** A value that may be missing. */
  private optional<T>(key: string, isRight: (value: unknown) => boolean, must: string, fix = 'copy it from the model') {
    const { value } = this.find([key]);
    if (value === undefined || isRight(value)) return value as T | undefined;
    this.refuse(key, must, fix);
    return undefined;
  }

  /** A list of any values; undefined when missing. */
  list(key: string): unknown[] | undefined {
    return this.optional(key, Array.isArray, 'must be a list');
  }

  /** A list of layer indices; undefined when missing. */
  layerNumbers(key: string, layers: number): number[] | undefined {
    const isLayer = (n: unknown) => typeof n === 'number' && Number.isInteger(n) && n >= 0 && n < layers;
    const must = `must be a list of layer indices from 0 to ${layers - 1}`;
    const isRight = (value: unknown) => Array.isArray(value) && value.every(isLayer);
    return this.optional(key, isRight, must, 'correct the list or the number of layers');
  }

  section(key: string): Config | undefined {
    const isRight = (value: unknown) => typeof value === 'object' && !Array.isArray(value);
    return this.optional(key, isRight, 'must be a section of options');
  }

  /** Requires these values of keys that are present, because other values define a different model. */
  only(required: Config): void {
    for (const [key, allowed] of Object.entries(required)) {
      const { value } = this.find([key]);
      this.take(key, allowed ?? null);
      if (value === undefined || value === allowed) continue;
      const must = allowed === undefined ? 'absent or null' : JSON.stringify(allowed);
      this.refuse(key, `must be ${must}: no other value is supported`, 'use model.architecture');
    }
  }

  /** Problems for keys that were not read and are not in `BOOKKEEPING`. Keys without a value are ignored. */
  unknownKeys(): ConfigProblem[] {
    return Object.keys(this.config)
      .filter(
        (key) => this.config[key] !== null && !this.read.has(key) && !BOOKKEEPING.has(key) && !/^(_|unsloth)/.test(key),
      )
      .map((key) => ({
        key,
        must: `must be a key that Slipway supports for model_type ${this.config.model_type}`,
        got: this.config[key],
        fix: 'remove it if it does not change the model, or use model.architecture',
      }));
  }
}
