/** One thing wrong with a config.json: at a key, in the parts of an issue. */
export interface ConfigProblem {
  key: string;
  must: string;
  got?: unknown;
  fix: string;
}

/** A Hugging Face config.json as parsed, before anything of it is judged. */
export type Config = Readonly<Record<string, unknown>>;

/** Keys of a text, which white space separates. */
export const keysOf = (text: string): string[] => text.split(/\s+/).filter((key) => key !== '');

/** Keys that say nothing of the model's shape: bookkeeping of libraries, generation, dropout, how training was done. */
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

/**
 * Typed look-ups in a config.json. It keeps what is wrong, and which keys were asked for: a key that nobody asked for is one that the
 * reader does not understand.
 */
export class ConfigFields {
  readonly problems: ConfigProblem[] = [];
  private readonly read = new Set<string>();

  constructor(private readonly config: Config) {}

  /** The value under the first of `keys` that is there and not null. */
  private find(keys: readonly string[]): { key: string; value: unknown } {
    for (const key of keys) this.read.add(key);
    const [first = ''] = keys;
    const given = keys.filter((key) => this.config[key] !== undefined && this.config[key] !== null);
    const [key = first, other] = given;
    if (other && JSON.stringify(this.config[key]) !== JSON.stringify(this.config[other]))
      this.refuse(other, `must be the same as ${key}`, 'keep one of the two');
    return { key, value: this.config[key] ?? undefined };
  }

  /** What is wrong at a key; said once, however often the key is asked for. */
  refuse(key: string, must: string, fix: string, got: unknown = this.config[key]): void {
    const isKnown = this.problems.some((p) => p.key === key && p.must === must && p.got === got);
    if (!isKnown) this.problems.push({ key, must, got, fix });
  }

  /** Keys that change nothing here. */
  ignore(...keys: string[]): void {
    for (const key of keys) this.read.add(key);
  }

  has(key: string): boolean {
    return this.config[key] !== undefined && this.config[key] !== null;
  }

  /** Whether the key is there without a value: `null` says that the model has no such part, a missing key leaves the family's default. */
  isNull(key: string): boolean {
    return this.config[key] === null;
  }

  /** Whether the key holds an empty list, which says as much as no key. */
  isEmpty(key: string): boolean {
    const value = this.config[key];
    if (!Array.isArray(value) || value.length > 0) return false;
    this.ignore(key);
    return true;
  }

  /** A whole number of at least `least`; the first of `keys` that is there. Without a default it must be given. */
  count(keys: string | readonly string[], otherwise?: number, least = 1): number {
    const { key, value } = this.find(typeof keys === 'string' ? [keys] : keys);
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
    this.refuse(key, `must be a whole number of at least ${least}`, 'copy it from the model', value);
    return otherwise ?? 1;
  }

  /** A count that may be missing, null or 0. */
  optionalCount(...keys: string[]): number | undefined {
    return this.count(keys, 0, 0) || undefined;
  }

  number(key: string, otherwise: number): number {
    const { value } = this.find([key]);
    if (value === undefined) return otherwise;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.refuse(key, 'must be a number', 'copy it from the model', value);
    return otherwise;
  }

  /** `null` is no: what transformers asks is whether the value is true. */
  flag(key: string, otherwise = false): boolean {
    const { value } = this.find([key]);
    if (value === undefined) return otherwise && !this.isNull(key);
    if (typeof value === 'boolean') return value;
    this.refuse(key, 'must be true or false', 'copy it from the model', value);
    return otherwise;
  }

  text(key: string, otherwise: string): string {
    const { value } = this.find([key]);
    if (value === undefined) return otherwise;
    if (typeof value === 'string') return value;
    this.refuse(key, 'must be text', 'copy it from the model', value);
    return otherwise;
  }

  /** Text of letters that `allowed` matches, empty where it does not; undefined where there is none or another kind of value. */
  letters(key: string, allowed: RegExp): string | undefined {
    const value = this.config[key];
    if (typeof value !== 'string') return undefined;
    const { value: text } = this.find([key]);
    if (allowed.test(value)) return String(text);
    this.refuse(key, `must match ${allowed.source}`, 'copy it from the model', value);
    return '';
  }

  /** A list with one entry for each layer; undefined where there is none. */
  perLayer(key: string, layers: number): unknown[] | undefined {
    const { value } = this.find([key]);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.length === layers) return value;
    const got = Array.isArray(value) ? `${value.length} entries` : value;
    this.refuse(
      key,
      `must have one entry for each of the ${layers} layers`,
      'correct the list or the number of layers',
      got,
    );
    return undefined;
  }

  /** A list of anything; undefined where there is none. */
  list(key: string): unknown[] | undefined {
    const { value } = this.find([key]);
    if (value === undefined || Array.isArray(value)) return value;
    this.refuse(key, 'must be a list', 'copy it from the model', value);
    return undefined;
  }

  /** A list of layer numbers; undefined where there is none. */
  layerNumbers(key: string, layers: number): number[] | undefined {
    const { value } = this.find([key]);
    if (value === undefined) return undefined;
    const isLayer = (n: unknown) => typeof n === 'number' && Number.isInteger(n) && n >= 0 && n < layers;
    if (Array.isArray(value) && value.every(isLayer)) return value;
    this.refuse(key, `must be a list of layers from 0 to ${layers - 1}`, 'correct the list or the number of layers');
    return undefined;
  }

  section(key: string): Config | undefined {
    const { value } = this.find([key]);
    if (value === undefined) return undefined;
    if (typeof value === 'object' && !Array.isArray(value)) return value as Config;
    this.refuse(key, 'must be a section of options', 'copy it from the model', value);
    return undefined;
  }

  /** Must have this value where it is given: another one makes another model. */
  only(key: string, allowed: unknown): void {
    const { value } = this.find([key]);
    if (value !== undefined && value !== allowed) {
      const must = allowed === undefined ? 'absent or null' : JSON.stringify(allowed);
      this.refuse(key, `must be ${must}: no other value is known`, 'use model.architecture');
    }
  }

  /** Keys that nobody asked for and that are no bookkeeping, as problems. A key without a value says nothing. */
  unknownKeys(): ConfigProblem[] {
    return Object.keys(this.config)
      .filter(
        (key) => this.config[key] !== null && !this.read.has(key) && !BOOKKEEPING.has(key) && !/^(_|unsloth)/.test(key),
      )
      .map((key) => ({
        key,
        must: `must be a key that Slipway knows of model_type ${this.config.model_type}`,
        got: this.config[key],
        fix: 'remove it if it does not change the model, or use model.architecture',
      }));
  }
}
