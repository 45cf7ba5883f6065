import { stringify } from 'yaml';
import type { TuningData, TuningModel } from './finetune-inputs';
import { runFileText, type Section, slugOf } from './repository';

/** What is trained, and how long. */
export interface Recipe {
  method: 'sft' | 'dpo';
  lora?: number;
  /** Format of the frozen weights with `lora`. @default - they keep their precision */
  quantization?: 'nf4';
  sequenceLength: number;
  /** Samples of the whole run: rows of `sequenceLength` tokens, or pairs. */
  samples: number;
}

/** Instances of the training, and what is recomputed to save their memory. */
export interface Cluster {
  instanceType: string;
  instanceCount: number;
  /** Samples per step are a multiple of these. */
  gpus: number;
  activationCheckpointing: 'none' | 'full';
}

export interface Job {
  model: TuningModel;
  data: TuningData;
  recipe: Recipe;
  /** Prefix of its inputs and tokens, which names their content. */
  prefix: string;
}

const FULL = { sft: 1e-5, dpo: 1e-6 } as const;
const ADAPTERS = { sft: 2e-4, dpo: 1e-5 } as const;
const ATTENTION = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
const GIB = 2 ** 30;

/** Samples per step: fewer for small data, so that there are steps enough to learn; a multiple of the GPUs. */
function batchOf({ samples }: Recipe, { gpus }: Cluster): number {
  const wanted = samples >= 6400 ? 64 : samples >= 1600 ? 32 : samples >= 400 ? 16 : 8;
  return Math.ceil(wanted / gpus) * gpus;
}

/** Name of the run that tokenises. */
const tokeniseName = ({ model }: Pick<Job, 'model'>): string => `tokenise-${slugOf(model.name)}`;

export function tokeniseText(job: Omit<Job, 'recipe'>, after: readonly string[]): string {
  const { data, prefix } = job;
  const bytes = data.files.reduce((sum, file) => sum + file.bytes, 0);
  const rows = data.upload ? { s3: `${prefix}rows/` } : data.source ? { source: data.source } : { s3: data.uri };
  return runFileText('Turns rows into tokens, and marks those that are trained.', [
    ['', { name: tokeniseName(job), kind: 'processing', ...(after.length > 0 && { after }) }],
    [
      'with the chat template of the model',
      {
        code: {
          source: 'builtin-tokenize',
          arguments: {
            tokenizer: '/opt/ml/processing/input/tokenizer/tokenizer.json',
            'data-channel': 'rows',
            ...(data.include && { include: data.include }),
          },
        },
        tokenizer: { trainOn: 'assistant' },
        compute: { instanceType: 'ml.m5.2xlarge', instanceCount: 1, volumeSizeGiB: 30 + Math.ceil((4 * bytes) / GIB) },
      },
    ],
    [
      'the manifest lists the files of the tokenizer, without the weights beside them',
      {
        data: [
          { channel: 'rows', ...rows },
          { channel: 'tokenizer', s3: `${prefix}tokenizer.manifest`, s3DataType: 'ManifestFile' },
        ],
        output: { s3: `${prefix}tokens/` },
        limits: { maxRuntimeSeconds: 86_400, maxCostUsd: 15 },
      },
    ],
  ]);
}

/** The trainer, and what it leaves. */
const codeSection = ({ method, lora }: Recipe, steps: number): Section => [
  lora ? 'the model folder gets the merged weights, and the adapter for PEFT' : 'the model folder gets the weights',
  {
    code: {
      source: 'builtin',
      arguments: {
        'learning-rate': (lora ? ADAPTERS : FULL)[method],
        'warmup-steps': Math.ceil(steps * 0.03),
        'weight-decay': 0,
        'export-weights': true,
        ...(lora && { 'export-adapter': true }),
      },
    },
  },
];

export function trainText(job: Job, cluster: Cluster, limits: Record<string, unknown> = {}): string {
  const { model, recipe, prefix } = job;
  const { method, lora, quantization, sequenceLength } = recipe;
  const globalBatchSize = batchOf(recipe, cluster);
  const steps = Math.max(1, Math.ceil(recipe.samples / globalBatchSize));
  return runFileText(
    `Fine-tunes ${stringify(model.name).trim()}: ${lora ? `adapters of rank ${lora}` : 'all weights'}${quantization ? ' on weights in 4 bits' : ''}, ${method}.`,
    [
      ['', { name: `${method}-${slugOf(model.name)}`, after: [`latest:${tokeniseName(job)}`] }],
      [
        model.source ? 'the fetched commit; its config.json is the model' : 'weights and configuration in S3',
        { model: model.source ? { weights: model.source } : { weights: model.uri, config: `${model.uri}config.json` } },
      ],
      [
        `${steps} steps of ${globalBatchSize} ${method === 'dpo' ? 'pairs' : `rows of ${sequenceLength} tokens, into which conversations are packed`}`,
        {
          training: {
            objective: method,
            sequenceLength,
            microBatchSize: 1,
            globalBatchSize,
            steps,
            activationCheckpointing: cluster.activationCheckpointing,
            ...(lora && {
              lora: { rank: lora, alpha: 2 * lora, targets: ATTENTION, ...(quantization && { quantization }) },
            }),
          },
        },
      ],
      codeSection(recipe, steps),
      [
        '',
        {
          compute: { instanceType: cluster.instanceType, instanceCount: cluster.instanceCount },
          data: [{ channel: 'train', s3: `${prefix}tokens/` }],
          ...(Object.keys(limits).length > 0 && { limits }),
        },
      ],
    ],
  );
}
