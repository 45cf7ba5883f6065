import { issue } from '../../core/config/issue';
import { configKeys } from '../../core/config/model-config';
import { Refusal } from '../exit';
import { requireRun } from '../inputs';
import { previewData } from '../plan/preview-data';
import type { FinetuneOptions } from './finetune';
import { type Job, type Recipe, tokeniseText } from './finetune-files';

/** What a person asked for. */
export interface Request extends Pick<Recipe, 'method' | 'lora' | 'quantization'> {
  epochs: number;
}

/** What `slipway_trainer.tokenize.preview --measure` counts: all rows, and tokens of the first ones. */
interface Measured {
  kind: string;
  rows: number;
  measured: number;
  tokens: number;
  targets: number;
  longest: number;
}

/** Number of rows whose tokens are counted before a launch. */
const MEASURED_ROWS = 2000;
/** Share of the tokens of packed rows that are not padding, where documents are much shorter than rows. */
const PACKED = 0.9;
const LENGTHS = [512, 1024, 2048, 4096, 8192];

/** What the rows train, and the lengths that follow from them; refuses rows that the tokenise step would refuse. */
export function examineRows(
  job: Omit<Job, 'recipe'>,
  { epochs, ...request }: Request,
  options: Pick<FinetuneOptions, 'python' | 'json'>,
): { preview: string; recipe: Recipe } {
  const { run } = requireRun({ file: 'tokenise.yaml', text: tokeniseText(job, []) }, {});
  const { file: data, share } = job.data.sample;
  const lines = previewData(
    run,
    { data, tokenizer: job.model.tokenizerFile, python: options.python, measure: MEASURED_ROWS },
    !options.json,
  ).split('\n');
  const found = JSON.parse(lines.pop() ?? '') as Measured;
  requireMethod(found, request.method);
  const rows = Math.round((found.rows * epochs) / share);
  const limit = Number(configKeys(job.model.config).max_position_embeddings) || 8192;
  const fitting = LENGTHS.filter((length) => length <= limit);
  const sequenceLength = fitting.find((length) => length >= found.longest) ?? fitting.at(-1) ?? limit;
  const tokens = (found.tokens / found.measured) * rows;
  const samples = request.method === 'dpo' ? rows : Math.ceil(tokens / (PACKED * sequenceLength));
  const estimate = `about ${rows.toLocaleString('en-US')} rows and ${Math.round(tokens).toLocaleString('en-US')} tokens in ${epochs} epoch${epochs === 1 ? '' : 's'}; ${sequenceLength} tokens a row`;
  return { preview: [...lines, estimate].join('\n'), recipe: { ...request, sequenceLength, samples } };
}

function requireMethod({ kind, targets }: Measured, method: Recipe['method']): void {
  if (kind === method && targets > 0) return;
  const isOther = kind !== method;
  throw new Refusal([
    issue('data/method', 'error', '--data', {
      must: `must have rows with ${method === 'sft' ? 'answers' : 'a chosen and a rejected answer'} for --method ${method}`,
      got: isOther ? `rows for ${kind}` : 'no trained token in the first rows',
      fix: isOther ? `use --method ${kind}, or other rows` : 'name other rows',
    }),
  ]);
}
