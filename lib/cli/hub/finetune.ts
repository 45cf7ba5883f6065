import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { clusterUsdPerHour } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { bucketAndKey, fillPlaceholders } from '../../core/config/formats/places';
import { type FetchedCommits, readModelConfig } from '../../core/config/inline';
import { issueOf } from '../../core/config/rule';
import { runCommand } from '../../core/contracts/names';
import { teamKeyEncryption } from '../../core/job/team-key';
import { makeFolder } from '../../shared/local/make-folder';
import { ask } from '../ask';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { findDescriptor } from '../environment/environment';
import { preflightRun } from '../environment/preflight';
import { EXIT, Refusal, UsageError } from '../exit';
import { type CheckedRun, type CommonOptions, checkRunFile, requireChecked, type ValidRun } from '../inputs';
import { submit } from '../launch/submit';
import { writing } from '../page-file';
import { json, type Terminal } from '../terminal';
import { checkedFetch } from './fetch';
import { choiceJson, choiceText, chooseClusters, examineRows, type Request } from './finetune-choice';
import { type Job, tokeniseText, trainText } from './finetune-files';
import { readData, readModel, type TuningModel } from './finetune-inputs';
import { type HubOptions, repositoryText, slugOf } from './repository';

export interface FinetuneOptions extends CommonOptions, HubOptions {
  model: string;
  data: string;
  method: string;
  lora?: string;
  qlora?: boolean;
  epochs: string;
  instanceType?: string;
  out?: string;
  dryRun?: boolean;
  yes?: boolean;
}

/** `slipway finetune`: everything that can be refused is refused before something starts. */
export async function finetune(options: FinetuneOptions, terminal: Terminal): Promise<number> {
  const request = requireRequest(options);
  const descriptor = await findDescriptor(options);
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-finetune-'));
  try {
    const place = { descriptor, folder, python: options.python };
    const model = await readModel(options.model, place);
    const { shape, findings } = readModelConfig(model.config);
    if (!shape)
      throw new Refusal(
        findings.map((one) => issueOf({ id: 'model/config', level: 'error' }, { ...one, path: '--model' })),
      );
    const data = await readData(options.data, request.method, place);
    const prefix = prefixOf(model, `${data.id} ${data.include ?? ''}`, request.method);
    const { preview, recipe } = examineRows({ model, data, prefix }, request, options);
    const job: Job = { model, data, prefix, recipe };
    const choices = chooseClusters({
      text: (cluster, limits) => trainText(job, cluster, limits),
      check: (text) => checkText('train', text, { options, descriptor, model }),
      descriptor,
      instanceType: options.instanceType,
    });
    const links = chainOf(job, choices[0]?.text ?? '', options, descriptor);
    const files = writeFiles(links, options.out ?? `finetune-${slugOf(model.name)}`);
    for (const { repository, uri } of [model, data])
      if (repository) terminal.err(repositoryText(repository, fillPlaceholders(uri, { descriptor })));
    terminal.err(`${preview}\n\n${choiceText(choices)}\n\nwrote ${files.join(', ')}`);
    const runs = options.dryRun
      ? []
      : await launchChain(links, job, { descriptor, yes: options.yes ?? false }, terminal);
    if (options.json) terminal.out(json({ files, plan: choices.map(choiceJson), runs }));
    return EXIT.done;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Rank of the adapters with `--qlora` alone. */
const QLORA_RANK = 16;

function requireRequest({ method, lora, qlora, epochs }: FinetuneOptions): Request {
  if (method !== 'sft' && method !== 'dpo')
    throw new UsageError(`--method: must be sft or dpo, got ${method}; use one of them`);
  const rank = lora === undefined ? (qlora ? QLORA_RANK : undefined) : Number(lora);
  if (rank !== undefined && !(Number.isInteger(rank) && rank >= 1 && rank <= 1024))
    throw new UsageError(`--lora: must be a rank from 1 to 1024, got ${lora}; write one such as 16`);
  const times = Number(epochs);
  if (!(times > 0 && times <= 1000))
    throw new UsageError(`--epochs: must be above 0 and at most 1000, got ${epochs}; correct it`);
  return { method, epochs: times, ...(rank !== undefined && { lora: rank }), ...(qlora && { quantization: 'nf4' }) };
}

/** A prefix per content: shards of other rows or of another tokenizer are never mixed. */
function prefixOf(model: TuningModel, data: string, method: string): string {
  const content = [model.source ?? model.uri, data, method].join('\n');
  const id = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return `s3://{dataBucket}/teams/{team}/finetune/${slugOf(model.name)}/${id}/`;
}

/** Commits of the weights, whether they are fetched already or by the first run. */
const fetchedOf = ({ source, config }: TuningModel): FetchedCommits =>
  source === undefined ? {} : { [source]: { commit: source.split('@')[1] ?? '', config } };

/** Options of the command for one of its files: secrets and variables of the hub belong to the fetch, everything else to the training. */
function optionsFor(name: Link['name'], { region, set = [] }: CommonOptions): CommonOptions {
  const isOfHub = (one: string) => /^\s*(secrets|environmentVariables)\.HF_/.test(one);
  return { region, set: name === 'tokenise' ? [] : set.filter((one) => isOfHub(one) === (name === 'fetch')) };
}

function checkText(
  name: Link['name'],
  text: string,
  { options, descriptor, model }: { options: FinetuneOptions; descriptor: Descriptor; model: TuningModel },
): CheckedRun {
  const modelConfig = model.source ? undefined : { uri: `${model.uri}config.json`, text: model.config };
  const given = { ...optionsFor(name, options), fetched: fetchedOf(model), modelConfig };
  return checkRunFile({ file: `${name}.yaml`, text }, given, descriptor);
}

/** The checked runs, in order. */
function chainOf(job: Job, trainFile: string, options: FinetuneOptions, descriptor: Descriptor): Link[] {
  const missing = [job.model, job.data].flatMap(({ repository }) => repository ?? []);
  const fetch = missing.length > 0 ? checkedFetch(missing, optionsFor('fetch', options), descriptor) : undefined;
  const link = (name: 'tokenise' | 'train', text: string): Link => {
    const checked = requireChecked(checkText(name, text, { options, descriptor, model: job.model }));
    return { name, text, checked };
  };
  return [
    ...(fetch ? [{ name: 'fetch' as const, text: fetch.text, checked: fetch }] : []),
    link('tokenise', tokeniseText(job, fetch ? [`latest:${fetch.run.name}`] : [])),
    link('train', trainFile),
  ];
}

/** Writes the run files, and returns their names. */
function writeFiles(links: readonly Link[], directory: string): string[] {
  return links.map(({ name, text }) => {
    const file = path.join(directory, `${name}.yaml`);
    writing('--out', 'folder', file, () => {
      makeFolder(directory);
      writeFileSync(file, text);
    });
    return file;
  });
}

/** A run of the chain: its file, and what was checked. */
interface Link {
  name: 'fetch' | 'tokenise' | 'train';
  text: string;
  checked: ValidRun;
}

/** Uploads what only this machine has, and starts the runs, each after the one before it. All are checked before the first starts. */
async function launchChain(
  links: readonly Link[],
  job: Job,
  { descriptor, yes }: { descriptor: Descriptor; yes: boolean },
  terminal: Terminal,
): Promise<{ name: string; runId: string }[]> {
  for (const { name, checked } of links) if (name !== 'tokenise') await preflightRun(checked.run, descriptor, terminal);
  if (!yes) await ask(`Launch ${links.map(({ name }) => name).join(', ')}?`);
  await upload(job, descriptor, terminal);
  for (const { name, checked } of links) if (name === 'tokenise') await preflightRun(checked.run, descriptor, terminal);
  const runs: { name: string; runId: string }[] = [];
  try {
    for (const { name, checked } of links) {
      const runId = await submitAfter(runs.at(-1)?.runId, { checked, file: `${name}.yaml`, descriptor }, terminal);
      runs.push({ name, runId });
      terminal.err(`${name}: ${runId}`);
    }
  } catch (error) {
    if (runs.length > 0) terminal.err(`started before the error: ${runs.map(({ runId }) => runId).join(', ')}`);
    throw error;
  }
  terminal.err(`${runCommand('status', runs.at(-1)?.runId ?? '', descriptor, '--wait')} to follow the training`);
  return runs;
}

async function submitAfter(
  after: string | undefined,
  launched: Parameters<typeof submit>[0],
  terminal: Terminal,
): Promise<string> {
  const { checked, descriptor } = launched;
  const overrides = [...checked.overrides, ...(after === undefined ? [] : [`after=${JSON.stringify([after])}`])];
  const acceptsUnknownPrice = clusterUsdPerHour(checked.run, descriptor) === undefined;
  return (await submit({ ...launched, checked: { ...checked, overrides } }, { acceptsUnknownPrice }, terminal)).runId;
}

/** The local file with rows, and the manifest of the tokenizer's files. */
async function upload({ model, data, prefix }: Job, descriptor: Descriptor, terminal: Terminal): Promise<void> {
  const filled = (uri: string) => fillPlaceholders(uri, { descriptor });
  const s3 = awsClient(S3Client, { region: descriptor.region });
  const put = (uri: string, body: Pick<PutObjectCommand['input'], 'Body' | 'ContentLength'>) =>
    calling(`uploading ${uri}`, () =>
      s3.send(new PutObjectCommand({ ...bucketAndKey(uri), ...body, ...teamKeyEncryption(descriptor) })),
    );
  if (data.upload) {
    terminal.err(`uploading ${data.upload}`);
    const size = statSync(data.upload).size;
    const target = filled(`${prefix}rows/${path.basename(data.upload)}`);
    await put(target, { Body: createReadStream(data.upload), ContentLength: size });
  }
  await put(filled(`${prefix}tokenizer.manifest`), { Body: json([{ prefix: filled(model.uri) }, ...model.tokenizer]) });
}
