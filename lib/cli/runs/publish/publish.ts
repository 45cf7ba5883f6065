import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { hasEnded } from '../../../contracts/control';
import { modelCard } from '../../../report/card/model-card';
import { type ModelFacts, modelFacts, type PublishedWeights } from '../../../report/card/model-facts';
import { bytes } from '../../../report/page/format';
import { assembleReport } from '../../../report/read/assemble';
import type { Descriptor } from '../../../spec/descriptor';
import { issue } from '../../../spec/issue';
import { calling } from '../../aws-errors';
import { EXIT, Refusal, UsageError } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { runTarget } from '../../launch/run-target';
import { json, type Terminal } from '../../terminal';
import { PUBLISHED, readLineage } from '../origin/read-lineage';
import { s3Folder, textIn } from '../origin/s3-address';
import { readSources } from '../reports/report-sources';
import { registerModel, registrationOf } from './register';
import { copyWeights, type Destination, encryption, type WeightFile, weightFiles } from './weights';

/** Options of `slipway publish`. */
export interface PublishOptions extends CommonOptions {
  to?: string;
  registry?: string;
  inferenceImage?: string;
  overwrite?: boolean;
}

/** What `slipway publish --json` prints. */
export interface Published {
  runId: string;
  /** Folder of the weights. */
  uri: string;
  files: { name: string; bytes: number }[];
  /** Address of the model card. */
  card: string;
  /** Version in the model registry; null without `--registry`. */
  modelPackageArn: string | null;
}

/** `slipway publish RUN`: final weights to a place of their own, with a card beside them and, where asked for, a version in the registry. */
export async function publish(runId: string, options: PublishOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
  const registration = registrationOf(options, descriptor);
  const to = destinationOf(options.to, descriptor, runId);
  const client = new S3Client({ region: descriptor.region });
  const sources = await readSources(descriptor, runId, new Date(), { configuration: true });
  const report = assembleReport(sources);
  if (!hasEnded(sources.status as Parameters<typeof hasEnded>[0]))
    throw refused(`must be over, got ${report.state}`, `slipway status ${runId} --wait says when it is`);
  const files = await trainedWeights(
    client,
    descriptor,
    report.attempts.findLast(({ status }) => status !== ''),
  );
  await requireFree(client, to, runId, options.overwrite ?? false);
  const uri = `s3://${to.bucket}/${to.prefix}`;
  const weights = { uri, files: files.map(({ name, bytes: size }) => ({ name, bytes: size })) };
  const lineage = await readLineage(descriptor, runId);
  const facts = modelFacts(report, lineage, sources.configuration?.spec ?? {}, weights);
  for (const [i, file] of files.entries()) {
    terminal.err(`copying ${i + 1} of ${files.length}: ${file.name}, ${bytes(file.bytes)}`);
    await copyWeights(client, file, to);
  }
  const card = await writeCard(client, to, facts);
  const modelPackageArn = registration ? await registerModel(descriptor, registration, facts) : null;
  const published: Published = { runId, ...weights, card, modelPackageArn };
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

/** What the newest job left in /opt/ml/model. */
async function trainedWeights(
  client: S3Client,
  { region }: Descriptor,
  newest: { trainingJobName: string } | undefined,
): Promise<WeightFile[]> {
  const name = newest?.trainingJobName;
  const fix = 'let the training write /opt/ml/model (export-weights: true in code.arguments of the built-in trainer)';
  if (name === undefined) throw refused('must have a job', fix);
  const { ModelArtifacts } = await calling(`describing ${name}`, () =>
    new SageMakerClient({ region }).send(new DescribeTrainingJobCommand({ TrainingJobName: name })),
  );
  const at = ModelArtifacts?.S3ModelArtifacts;
  const files = at ? await weightFiles(client, at) : [];
  if (files.length === 0) throw refused(`must have left weights, got none at ${at ?? 'an unknown place'}`, fix);
  return files;
}

/** Weights of another run stay: a model that is served must not change under its name. */
async function requireFree(client: S3Client, to: Destination, runId: string, overwrites: boolean): Promise<void> {
  const text = await textIn(client, to.bucket, `${to.prefix}${PUBLISHED}`);
  if (text === undefined || overwrites) return;
  const other = /"runId": *"([^"]+)"/.exec(text)?.[1];
  if (other === runId) return;
  throw new UsageError(
    `--to: must be free, got the weights of ${other ?? 'another run'} at s3://${to.bucket}/${to.prefix}; name another prefix, or add --overwrite`,
  );
}

/** The card, and last the lineage: without it nothing was published. */
async function writeCard(client: S3Client, to: Destination, facts: ModelFacts): Promise<string> {
  // An own script may bring a README of its own.
  const name = facts.weights.files.some((file) => file.name === 'README.md') ? 'MODEL_CARD.md' : 'README.md';
  const record = {
    schema: 1,
    runId: facts.runId,
    weights: facts.weights satisfies PublishedWeights,
    lineage: facts.lineage,
  };
  const texts = [
    [name, modelCard(facts), 'text/markdown; charset=utf-8'],
    [PUBLISHED, json(record), 'application/json'],
  ] as const;
  for (const [file, Body, ContentType] of texts) {
    const target = { Bucket: to.bucket, Key: `${to.prefix}${file}`, ...encryption(to) };
    await calling(`writing s3://${target.Bucket}/${target.Key}`, () =>
      client.send(new PutObjectCommand({ ...target, Body, ContentType })),
    );
  }
  return `${facts.weights.uri}${name}`;
}

function publishedText({ runId, uri, files, card, modelPackageArn }: Published): string {
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  return [
    `${runId}: ${files.length} ${files.length === 1 ? 'file' : 'files'}, ${bytes(total)}, at ${uri}`,
    `card: ${card}; licence, intended uses, limitations and data are left for people to fill in`,
    ...(modelPackageArn ? [`registered as ${modelPackageArn}; it waits for its approval`] : []),
  ].join('\n');
}
