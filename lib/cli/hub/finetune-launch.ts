import { createReadStream, statSync } from 'node:fs';
import path from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { clusterUsdPerHour } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders } from '../../core/config/formats/places';
import { bucketAndKey } from '../../core/config/formats/s3-uri';
import type { RunSpec } from '../../core/config/run-spec';
import { teamKeyEncryption } from '../../core/job/team-key';
import { ask } from '../ask';
import { calling } from '../aws-errors';
import { preflightRun } from '../environment/preflight';
import type { CheckedRun } from '../inputs';
import { submit } from '../launch/submit';
import { json, type Terminal } from '../terminal';
import type { Job } from './finetune-files';

/** A run of the chain: its file, and what was checked. */
export interface Link {
  name: 'fetch' | 'tokenise' | 'train';
  text: string;
  checked: CheckedRun & { run: RunSpec };
}

/** Uploads what only this machine has, and starts the runs, each after the one before it. All are checked before the first starts. */
export async function launchChain(
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
  terminal.err(`slipway status ${runs.at(-1)?.runId} --wait to follow the training`);
  return runs;
}

/** Submits a checked run that waits for another one; returns its ID. */
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
  const s3 = new S3Client({ region: descriptor.region });
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
