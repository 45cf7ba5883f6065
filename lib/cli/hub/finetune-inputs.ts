import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { S3Client } from '@aws-sdk/client-s3';
import constants from '../../core/catalog/trainer-constants.json';
import type { Descriptor } from '../../core/config/descriptor';
import {
  fillPlaceholders,
  hubFolder,
  hubSourceText,
  isHubSource,
  parseS3Uri,
  withSlash,
} from '../../core/config/formats/places';
import { openObject } from '../../shared/aws/read-object';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { UsageError } from '../exit';
import { listing } from '../runs/publish/weights';
import { requireHubSource } from './fetch';
import { findFetched } from './fetched';
import { describeRepository, type HubOptions, pinnedText, type Repository } from './repository';

/** Where inputs are read, and copied to on this machine. */
export interface InputPlace extends HubOptions {
  descriptor: Descriptor;
  folder: string;
}

/** Files of an input, wherever they are. */
interface Files {
  /** Folder in S3 in which a run finds them, with placeholders. */
  uri: string;
  files: { path: string; bytes: number }[];
  /** Named in run files instead of the folder. */
  source?: string;
  repository?: Repository;
}

export interface TuningModel extends Files {
  config: string;
  /** Name without its organisation. */
  name: string;
  /** Files of the tokenizer, relative to the folder. */
  tokenizer: string[];
  /** tokenizer.json on this machine. */
  tokenizerFile: string;
}

export interface TuningData extends Files {
  /** Identifies the content, and the name of an uploaded file. */
  id: string;
  /** A file of the rows on this machine, and its share of all of them. */
  sample: { file: string; share: number };
  /** Patterns of the files that are read. @default - all */
  include?: string;
  /** Local file that is uploaded. */
  upload?: string;
}

const OF_TOKENIZER =
  /^(tokenizer[^/]*|special_tokens_map\.json|chat_template\.(jinja|json)|additional_chat_templates\/.+)$/;
const { lines, compressed, tables, descriptions } = constants.rowFiles;
const suffixes = [...lines.flatMap((kind) => ['', ...compressed].map((packed) => `${kind}${packed}`)), ...tables];
const hasRows = ({ path: name, bytes }: { path: string; bytes: number }): boolean =>
  bytes > 0 && suffixes.some((suffix) => name.endsWith(suffix)) && !descriptions.includes(path.posix.basename(name));
/** Largest file that is copied for the preview, and of a tokenizer. */
const MAX_SAMPLE_BYTES = 256 * 2 ** 20;
/** Largest object of one upload: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html, 2026-11-27. */
const MAX_UPLOAD_BYTES = 5 * 2 ** 30;
/** Splits that hold the rows of a method, in order of preference; data sets name others for evaluation and generation. */
const SPLITS = { sft: ['train_sft', 'train'], dpo: ['train_prefs', 'train'] } as const;

/** Whether a file is of a split: `train-0.parquet` and `data/train/a.jsonl` are, `constraints.jsonl` is not. */
const ofSplit = (split: string) => {
  const word = new RegExp(`(^|[^a-z])${split}([^a-z]|$)`, 'i');
  return (file: { path: string }): boolean => word.test(file.path);
};

/** The pattern of a split, or the files by name where it would select others. */
function patternOf(split: string, kept: Files['files'], { files }: Files): string {
  const selected = files.filter(({ path: name }) => name.includes(split));
  return selected.length === kept.length ? `*${split}*` : kept.map(({ path: name }) => name).join(',');
}

/** The model of `--model`. Throws a UsageError when it lacks what a fine-tuning reads. */
export async function readModel(text: string, place: InputPlace): Promise<TuningModel> {
  const found = await filesOf('model', text, place);
  const names = found.files.map((file) => file.path);
  const tokenizer = names.filter((name) => OF_TOKENIZER.test(name));
  const lacking = ['config.json', 'tokenizer.json'].filter((name) => !names.includes(name));
  if (!names.some((name) => /^[^/]+\.safetensors$/.test(name))) lacking.unshift('*.safetensors');
  if (lacking.length > 0)
    throw new UsageError(
      `--model: must have ${lacking.join(' and ')}, got ${text} without; name another model, or convert it`,
    );
  const folder = path.join(place.folder, 'model');
  await copyDown(found, ['config.json', ...tokenizer], folder, place.descriptor);
  const config = readFileSync(path.join(folder, 'config.json'), 'utf8');
  const name = withSlash(text.replace(/@.*$/, '')).split('/').at(-2) ?? '';
  return { ...found, config, name, tokenizer, tokenizerFile: path.join(folder, 'tokenizer.json') };
}

/** The rows of `--data`. Throws a UsageError when there are none. */
export async function readData(text: string, method: 'sft' | 'dpo', place: InputPlace): Promise<TuningData> {
  if (!/^(hf:|s3:)/.test(text)) return localData(text);
  const found = await filesOf('data', text, place);
  const rows = found.files.filter((file) => hasRows(file) && isPlain(file.path));
  const split = SPLITS[method].find((name) => rows.some(ofSplit(name)));
  const kept = split === undefined ? rows : rows.filter(ofSplit(split));
  const sample = found.repository
    ? kept.find((file) => found.repository?.saved.includes(file.path))
    : [...kept].sort((a, b) => a.bytes - b.bytes)[0];
  if (!sample || sample.bytes > MAX_SAMPLE_BYTES) {
    const [got, fix] = sample ? [`${kept.length} larger ones`, 'split them'] : ['none', 'name the folder of the rows'];
    throw new UsageError(
      `--data: must have a .jsonl, .json, .parquet or .arrow file of at most ${MAX_SAMPLE_BYTES / 2 ** 20} MiB, whose rows are looked at, got ${text} with ${got}; ${fix}`,
    );
  }
  const folder = path.join(place.folder, 'data');
  await copyDown(found, [sample.path], folder, place.descriptor);
  const bytes = kept.reduce((sum, file) => sum + file.bytes, 0);
  return {
    ...found,
    files: kept,
    id: found.source ?? found.uri,
    sample: { file: path.join(folder, sample.path), share: sample.bytes / bytes },
    ...(kept.length < found.files.length && {
      include: split === undefined ? suffixes.map((suffix) => `*${suffix}`).join(',') : patternOf(split, kept, found),
    }),
  };
}

async function localData(file: string): Promise<TuningData> {
  if (!existsSync(file) || !statSync(file).isFile())
    throw new UsageError(`--data: must be a file with rows, hf:datasets/ORG/NAME or s3://..., got ${file}; correct it`);
  const bytes = statSync(file).size;
  if (bytes > MAX_UPLOAD_BYTES)
    throw new UsageError(
      `--data: must be a file of at most 5 GiB, got ${file}; upload it with aws s3 cp, and name s3://...`,
    );
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const files = [{ path: path.basename(file), bytes }];
  const id = `${hash.digest('hex')} ${path.basename(file)}`;
  return { uri: '', files, id, sample: { file, share: 1 }, upload: file };
}

const KINDS = {
  model: ['model', 'a model, got the data set', 'write it as --data'],
  data: ['dataset', 'a data set such as hf:datasets/ORG/NAME, got the model', 'correct it'],
} as const;

/** Files of an input: of a fetched commit, of the hub, or of a prefix in S3. */
async function filesOf(input: keyof typeof KINDS, text: string, place: InputPlace): Promise<Files> {
  const option = `--${input}`;
  if (!isHubSource(text)) return s3Files(option, text, place);
  const source = requireHubSource(option, text);
  const [kind, must, fix] = KINDS[input];
  if (source.kind !== kind) throw new UsageError(`${option}: must be ${must} ${text}; ${fix}`);
  const fetched = await findFetched(source, place.descriptor);
  const repository = fetched
    ? undefined
    : describeRepository(source, { python: place.python, save: path.join(place.folder, input) });
  const at = { ...source, revision: fetched?.commit ?? repository?.commit ?? '' };
  const files = fetched?.files ?? repository?.files ?? [];
  const named = repository ? pinnedText(repository) : hubSourceText(at);
  return { uri: hubFolder(at), files, source: named, repository };
}

async function s3Files(option: string, text: string, { descriptor }: InputPlace): Promise<Files> {
  if (!/^s3:\/\/[^/]+\/./.test(text))
    throw new UsageError(`${option}: must be hf:ORG/NAME or a prefix in S3, got ${text}; correct it`);
  const uri = withSlash(text);
  const { bucket, key } = parseS3Uri(fillPlaceholders(uri, { descriptor }));
  const found = await listing(awsClient(S3Client, { region: descriptor.region }), bucket, key);
  return { uri, files: found.map((object) => ({ path: object.key.slice(key.length), bytes: object.bytes })) };
}

/** Keys of S3 may contain any text: one such as `a/../../x` is not written outside the folder. */
const isPlain = (name: string): boolean => !name.split('/').some((part) => ['', '.', '..'].includes(part));

/** Copies files of a prefix in S3, or of a fetched commit; those of the hub are here already. */
async function copyDown(from: Files, names: readonly string[], folder: string, descriptor: Descriptor): Promise<void> {
  if (from.repository) return;
  const { bucket: Bucket, key } = parseS3Uri(fillPlaceholders(from.uri, { descriptor }));
  const s3 = awsClient(S3Client, { region: descriptor.region });
  for (const name of names.filter(isPlain)) {
    const target = path.join(folder, name);
    mkdirSync(path.dirname(target), { recursive: true });
    const { Body } = await calling(`reading s3://${Bucket}/${key}${name}`, () =>
      openObject(s3, { Bucket, Key: `${key}${name}` }, MAX_SAMPLE_BYTES),
    );
    writeFileSync(target, await Body.transformToByteArray());
  }
}
