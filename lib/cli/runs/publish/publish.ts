import { createHash } from 'node:crypto';
import { HeadBucketCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { Descriptor } from '../../../core/config/descriptor';
import { parseJson } from '../../../core/config/formats/json';
import { plainLine } from '../../../core/config/formats/plain-text';
import { issue } from '../../../core/config/issue';
import type { Printed } from '../../../core/contracts/answers';
import { hasEnded } from '../../../core/contracts/control';
import { runCommand } from '../../../core/contracts/names';
import {
  CARDS,
  cardFile,
  type ModelFacts,
  modelCard,
  modelFacts,
  type PublishedWeights,
} from '../../../report/card/model-card';
import { bytes } from '../../../report/page/format';
import { assembleReport } from '../../../report/read/assemble';
import { bucketRegionIn } from '../../../shared/aws/answers';
import { awsClient } from '../../aws-client';
import { calling } from '../../aws-errors';
import { findDescriptor } from '../../environment/environment';
import { EXIT, Refusal, UsageError } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { interruptible, json, type Terminal } from '../../terminal';
import { PUBLISHED, readLineage } from '../lineage';
import { clientForAddresses, s3Folder, textIn } from '../reports/committed-checkpoints';
import { readSources } from '../reports/report-sources';
import { type Registration, registerModel, registrationOf } from './register';
import { copyWeights, type Destination, encryption, listing, type WeightFile, weightFiles } from './weights';

export interface PublishOptions extends CommonOptions {
  to?: string;
  registry?: string;
  inferenceImage?: string;
  overwrite?: boolean;
}

/**
 * `slipway publish RUN`: copies the final weights to a destination, with a model card and, if requested, a version in the model registry.
 */
export async function publish(runId: string, options: PublishOptions, terminal: Terminal): Promise<number> {
  const descriptor = await findDescriptor(options);
  const registration = registrationOf(options, descriptor);
  const to = destinationOf(options.to, descriptor, runId);
  const client = clientForAddresses(descriptor.region);
  if (registration) await requireRegion(client, to, descriptor);
  const sources = await readSources(descriptor, runId, { configuration: true, isPlanned: false });
  if (!hasEnded(sources.status))
    throw refused(
      `must be over, got ${sources.status.state}`,
      `${runCommand('status', runId, descriptor, '--wait')} says when it is`,
    );
  const report = assembleReport(sources);
  const newest = report.attempts.findLast(({ status }) => status !== '');
  const { job, files } = await trainedWeights(client, descriptor, newest);
  const origin = { runId, job };
  const before = await requireFree(client, to, { origin, files, overwrites: options.overwrite ?? false });
  const uri = `s3://${to.bucket}/${to.prefix}`;
  const weights = { uri, files: files.map(({ name, bytes: size }) => ({ name, bytes: size })) };
  const lineage = await readLineage(descriptor, runId, sources);
  const facts = modelFacts(report, lineage, sources.configuration?.spec ?? {}, weights);
  const { copied, isInterrupted } = await copyAll(client, files, to, terminal);
  if (isInterrupted) {
    terminal.err(
      `interrupted: ${copied} of ${files.length} files are at ${uri}, without their card; the same command finishes it`,
    );
    return EXIT.interrupted;
  }
  const card = await writeCard(client, to, { origin, facts, before: options.overwrite ? undefined : before }, terminal);
  const modelPackageArn = registration ? await register(descriptor, { ...registration, job }, facts, terminal) : null;
  const published: Printed<'published'> = { runId, ...weights, card, modelPackageArn };
  terminal.out(options.json ? json(published) : publishedText(published));
  return EXIT.done;
}

const refused = (must: string, fix: string): Refusal => new Refusal([issue('publish', 'error', 'run', { must, fix })]);

function destinationOf(given: string | undefined, descriptor: Descriptor, runId: string): Destination {
  const { dataBucket, team, teamKeyArn } = descriptor;
  const address = given ?? `s3://${dataBucket}/teams/${team}/models/${runId}/`;
  const folder = s3Folder(address);
  if (!folder || folder.prefix === '')
    throw new UsageError(
      `--to: must be s3://bucket/prefix/, got ${address}; leave it out for s3://${dataBucket}/teams/${team}/models/${runId}/`,
    );
  return { ...folder, ...(teamKeyArn && folder.bucket === dataBucket && { kmsKeyArn: teamKeyArn }) };
}

/** The content of /opt/ml/model from the newest job. */
async function trainedWeights(
  client: S3Client,
  { region }: Descriptor,
  newest: { trainingJobName: string } | undefined,
): Promise<{ job: string; files: WeightFile[] }> {
  const name = newest?.trainingJobName;
  const fix = 'let the training write /opt/ml/model (export-weights: true in code.arguments of the built-in trainer)';
  if (name === undefined) throw refused('must have a job', fix);
  const { ModelArtifacts } = await calling(`describing ${name}`, () =>
    awsClient(SageMakerClient, { region }).send(new DescribeTrainingJobCommand({ TrainingJobName: name })),
  );
  const at = ModelArtifacts?.S3ModelArtifacts;
  const files = at ? await weightFiles(client, at) : [];
  if (files.length === 0) throw refused(`must have left weights, got none at ${at ?? 'an unknown place'}`, fix);
  // Of the trainer's safetensors.py, if the job was stopped meanwhile.
  const cutOff = files.find((file) => file.name.endsWith('.safetensors.tmp'));
  if (cutOff)
    throw refused(`must have left whole weights, got ${cutOff.name}`, 'resume the run, which exports them again');
  return { job: name, files };
}

/** Whose weights are at a place: a run that is resumed leaves others, from another job. */
interface Origin {
  runId: string;
  job: string;
}

/**
 * Weights of another run or job, or of an unknown origin, are only replaced with `--overwrite`: a model that is served must not change under the
 * same name. Files that the copy would not replace are also rejected, because they would be served together with it. Until the copy is
 * complete, the record names no weights. Returns the record of an earlier, complete publish of the same job.
 */
async function requireFree(
  client: S3Client,
  to: Destination,
  { origin, files, overwrites }: { origin: Origin; files: readonly WeightFile[]; overwrites: boolean },
): Promise<string | undefined> {
  const place = `s3://${to.bucket}/${to.prefix}`;
  const text = await textIn(client, to.bucket, `${to.prefix}${PUBLISHED}`);
  const { runId: owner, job = origin.job, weights } = recordIn(text);
  if (owner === origin.runId && job === origin.job) return weights === null ? undefined : text;
  const found = (await listing(client, to.bucket, to.prefix)).map(({ key }) => key.slice(to.prefix.length));
  const written = new Set([...files.map(({ name }) => name), ...CARDS, PUBLISHED]);
  const strange = found.filter((name) => !written.has(name));
  if (strange.length > 0)
    throw new UsageError(
      `--to: must contain no files that these weights do not replace, got ${strange.slice(0, 3).join(', ')}${strange.length > 3 ? ` and ${strange.length - 3} more` : ''} at ${place}; delete them, or name another prefix`,
    );
  if (found.length > 0 && !overwrites)
    throw new UsageError(
      `--to: must be free, got the weights of ${owner === origin.runId ? job : (owner ?? 'an unknown run')} at ${place}; name another prefix, or add --overwrite`,
    );
  await write(client, to, PUBLISHED, json({ schema: 1, ...origin, weights: null, lineage: null }));
  return undefined;
}

/** What a record says, as far as it can be read: the lineage in it may have keys of the same names. */
const recordIn = (text = '{}'): Partial<Origin> & { weights?: PublishedWeights | null } => parseJson(text) ?? {};

/** Creates the version in the registry; if this fails, the published files stay, and the message names them. */
async function register(
  descriptor: Descriptor,
  registration: Registration & Pick<Origin, 'job'>,
  facts: ModelFacts,
  terminal: Terminal,
): Promise<string> {
  try {
    return await registerModel(descriptor, registration, facts);
  } catch (error) {
    terminal.err(`${facts.runId}: published at ${facts.weights.uri}, not registered; the same command registers it`);
    throw error;
  }
}

/**
 * Writes the card and then the lineage: without the lineage the publish is incomplete. A card that people have edited since the publish
 * `before` is kept.
 */
async function writeCard(
  client: S3Client,
  to: Destination,
  { origin, facts, before }: { origin: Origin; facts: ModelFacts; before?: string },
  terminal: Terminal,
): Promise<string> {
  const name = cardFile(facts.weights);
  const at = `${facts.weights.uri}${name}`;
  const there = before === undefined ? undefined : await textIn(client, to.bucket, `${to.prefix}${name}`);
  const isEdited = there !== undefined && !before?.includes(digest(there));
  if (isEdited) terminal.err(`${at}: was edited and stays; --overwrite replaces it`);
  const text = isEdited ? there : modelCard(facts);
  if (!isEdited) await write(client, to, name, text);
  const record = {
    schema: 1,
    ...origin,
    weights: facts.weights satisfies PublishedWeights,
    lineage: facts.lineage,
    // Digest of the card as written, so that edits can be detected.
    cardSha256: isEdited ? null : digest(text),
  };
  await write(client, to, PUBLISHED, json(record));
  return at;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

async function write(client: S3Client, to: Destination, name: string, Body: string): Promise<void> {
  const target = { Bucket: to.bucket, Key: `${to.prefix}${name}`, ...encryption(to) };
  const ContentType = name.endsWith('.md') ? 'text/markdown; charset=utf-8' : 'application/json';
  await calling(`writing s3://${target.Bucket}/${target.Key}`, () =>
    client.send(new PutObjectCommand({ ...target, Body, ContentType })),
  );
}

function publishedText({ runId, uri, files, card, modelPackageArn }: Printed<'published'>): string {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return [
    `${runId}: ${files.length} ${files.length === 1 ? 'file' : 'files'}, ${bytes(total)}, at ${uri}`,
    `card: ${card}; licence, intended uses, limitations and data are left for people to fill in`,
    ...(modelPackageArn ? [`registered as ${modelPackageArn}; it waits for its approval`] : []),
  ].join('\n');
}

/**
 * Weights of a version in the model registry must be in a bucket of its region:
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelPackageContainerDefinition.html, read 2026-11-23. If S3 does not
 * return the region, the service checks it.
 * @throws UsageError for a bucket of another region
 */
async function requireRegion(client: S3Client, { bucket }: Destination, descriptor: Descriptor): Promise<void> {
  const { dataBucket, checkpointBucket, artifactBucket, region } = descriptor;
  if ([dataBucket, checkpointBucket, artifactBucket].includes(bucket)) return;
  const found = await client
    .send(new HeadBucketCommand({ Bucket: bucket }))
    .then(({ BucketRegion }) => BucketRegion, bucketRegionIn);
  if (found !== undefined && found !== region)
    throw new UsageError(
      `--to: must be a bucket of ${region} for a version in the registry, got ${bucket} of ${found}; name a bucket there, or leave --registry out`,
    );
}

/**
 * Copies files one after the other, and prints progress. Ctrl-C waits for the current file and leaves no incomplete upload. Throws a
 * ServiceError when a copy fails.
 */
async function copyAll(
  client: S3Client,
  files: readonly WeightFile[],
  to: Destination,
  terminal: Terminal,
): Promise<{ copied: number; isInterrupted: boolean }> {
  const onInterrupt = () =>
    terminal.err(
      'interrupted: waiting for what is under way, so that no incomplete upload stays; do not interrupt again',
    );
  return interruptible(onInterrupt, async (interrupted) => {
    let copied = 0;
    try {
      for (const file of files) {
        if (interrupted.aborted) break;
        terminal.err(plainLine(`copying ${copied + 1} of ${files.length}: ${file.name}, ${bytes(file.bytes)}`));
        await copyWeights(client, file, to, interrupted);
        copied += 1;
      }
    } catch (error) {
      if (!interrupted.aborted) throw error;
      terminal.err((error as Error).message);
    }
    return { copied, isInterrupted: interrupted.aborted };
  });
}
