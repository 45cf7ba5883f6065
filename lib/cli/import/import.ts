import { existsSync } from 'node:fs';
import { S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, ListTagsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { Document, visit } from 'yaml';
import { clusterUsdPerHour } from '../../core/admission';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { parseJson } from '../../core/config/formats/json';
import { plainJson, plainLine } from '../../core/config/formats/plain-text';
import { bareIssue, formatValue } from '../../core/config/issue';
import { loadRun } from '../../core/config/load';
import { isFlatterThan, MAX_LEVELS } from '../../core/config/reading/limits';
import type { RunSpec } from '../../core/config/run-spec';
import { trainingJobRequest } from '../../core/job/training-request';
import { quotaTable, runQuotaNeeds } from '../../core/quota';
import { checkRun } from '../../core/rules';
import { openObject } from '../../shared/aws/read-object';
import { awsClient } from '../aws-client';
import { calling, undefinedWhenDenied } from '../aws-errors';
import { callRegion, findDescriptor } from '../environment/environment';
import { quotaJson, quotaRows } from '../environment/quota';
import { EXIT, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { issueLine, json, type Terminal } from '../terminal';
import { notCarriedBy } from './differences';
import { draftOf, regionOfImage } from './from-request';
import { type ForeignRequest, findRequest } from './read-request';
import type { Draft, NotCarried } from './rows';
import { channelUri, TRAINER_CHANNEL, type TrainerFiles } from './start';

const JOB_ARN = /^arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):\d{12}:training-job\/(.+)$/;
/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html */
const JOB_NAME = /^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/;

/** `slipway import JOB|ARN|FILE`: converts a job or request to a run file, and prints the verdicts of the checks. */
export async function importJob(from: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (options.set?.length)
    throw new UsageError(
      `--set: must not be given to import, got ${options.set.join(' ')}; change the run file that it prints, or give --set to validate, plan or launch`,
    );
  // An import does not require an environment.
  const descriptor = options.environment === undefined ? undefined : await findDescriptor(options);
  const { imported, isInAccount } = await readSource(from, options, descriptor);
  const verdicts = imported.run && (await judge(imported.run, imported, isInAccount));
  const issues = [...imported.issues, ...(verdicts?.issues ?? [])].map(bareIssue);
  if (options.json) {
    const { runFile, notCarried } = imported;
    terminal.out(json({ runFile, notCarried, issues, ...(verdicts && { verdicts: verdicts.facts }) }));
    return EXIT.done;
  }
  terminal.out(imported.runFile.trimEnd());
  for (const found of issues) terminal.err(issueLine(found, from));
  for (const line of verdicts?.lines ?? []) terminal.err(line);
  return EXIT.done;
}

/** `isInAccount`: whether the job is in an account whose quotas can be read. */
async function readSource(from: string, options: CommonOptions, descriptor?: Descriptor) {
  const context: ImportContext = { source: from, descriptor, region: options.region };
  if (existsSync(from)) {
    const imported = importText(readText(from), context);
    if (imported) return { imported, isInAccount: false };
    throw new UsageError(
      `${from}: must be the JSON of a CreateTrainingJob request or of the response of DescribeTrainingJob, got something else; docs/import.md shows how to capture a request`,
    );
  }
  const [, regionOfArn, nameOfArn] = JOB_ARN.exec(from) ?? [];
  const name = nameOfArn ?? from;
  if (!JOB_NAME.test(name))
    throw new UsageError(`import: must be a training job, its ARN or a readable file, got ${from}; check the name`);
  const region = regionOfArn ?? (await callRegion({ ...options, region: options.region ?? descriptor?.region }));
  return { imported: await importLive(name, { ...context, region }), isInAccount: true };
}

/** The request of a job in the account, including its tags if they may be read. */
async function importLive(TrainingJobName: string, context: ImportContext & { region: string }): Promise<Imported> {
  const client = awsClient(SageMakerClient, { region: context.region });
  const job = await calling(`describing ${TrainingJobName} in ${context.region}`, () =>
    client.send(new DescribeTrainingJobCommand({ TrainingJobName })),
  );
  const tagged = client.send(new ListTagsCommand({ ResourceArn: job.TrainingJobArn })).catch(undefinedWhenDenied);
  const Tags = (await tagged)?.Tags;
  const request = findRequest({ ...job, ...(Tags && { Tags }) });
  if (!request)
    throw new UsageError(`import: must be a training job with instances, got ${TrainingJobName}; import another`);
  return importRequest(request, { ...context, trainerFiles: await trainerFilesOf(request, context.region) });
}

/** The script that a job of SDK v3 starts, from the files beside its drivers; if they cannot be read, the run file says so. */
async function trainerFilesOf(request: ForeignRequest, region: string): Promise<TrainerFiles> {
  const [, Bucket, prefix = ''] = /^s3:\/\/([^/]+)\/(.*?)\/?$/.exec(channelUri(request, TRAINER_CHANNEL) ?? '') ?? [];
  if (!Bucket) return {};
  const s3 = awsClient(S3Client, { region, followRegionRedirects: true });
  const read = async (name: string): Promise<unknown> => {
    try {
      const { Body } = await openObject(s3, { Bucket, Key: `${prefix}/${name}` });
      return JSON.parse(await Body.transformToString());
    } catch {
      return undefined;
    }
  };
  return { sourceCode: await read('sourcecode.json'), distributed: await read('distributed.json') };
}

/** Rules, price and, for a job in the account, quotas. The code is not available yet, so rules about its files are skipped. */
async function judge(run: RunSpec, { region }: Imported, asksAccount: boolean) {
  const price = clusterUsdPerHour(run, { region });
  const rows = asksAccount ? await quotaRows(runQuotaNeeds(run), region) : [];
  return {
    issues: checkRun(run, { region }),
    facts: { usdPerHour: price?.usd ?? null, quotas: rows.map(quotaJson) },
    lines: [
      `price: ${price ? `$${price.usd.toFixed(2)} per hour on demand in ${region}` : `not known in ${region}`}`,
      rows.length > 0 ? quotaTable(rows) : 'quotas: run slipway preflight to check the account',
    ],
  };
}

/** A run file that was created from an existing job, with the schema errors that prevent further checks. */
type Imported = ReturnType<typeof importRequest>;

/**
 * The source, and the environment to compare with; without an environment, all values that an environment determines are listed as
 * differences.
 */
interface ImportContext {
  /** Source as given by the user: a job, an ARN or a file. */
  source: string;
  descriptor?: Descriptor;
  region?: string;
  /** Files with the script and distribution of an SDK v3 job. @default - not known */
  trainerFiles?: TrainerFiles;
}

/** Imports the JSON of a request, or of the response of DescribeTrainingJob; undefined for any other content. */
export function importText(text: string, context: ImportContext): Imported | undefined {
  const document = parseJson(text);
  const request = isFlatterThan(document, MAX_LEVELS) ? findRequest(document) : undefined;
  return request && importRequest(request, context);
}

export function importRequest(request: ForeignRequest, context: ImportContext) {
  const { draft, remarks } = draftOf(request, context.trainerFiles);
  const region = context.region ?? context.descriptor?.region ?? regionOfImage(request) ?? 'us-west-2';
  const { issues, value: run } = loadRun(runFileText(draft, [], context.source));
  const remade = run && trainingJobRequest(planOf(run, region, context.descriptor));
  const notCarried = [...remarks, ...(remade ? notCarriedBy(request, remade) : [])];
  const runFile = runFileText(draft, notCarried, context.source);
  return { runFile, notCarried, issues: issues.map(bareIssue), run, region };
}

/** An environment without settings, so that all values from an environment are reported as differences. */
const NO_ENVIRONMENT: Descriptor = {
  schemaVersion: 1,
  name: 'imported',
  team: 'imported',
  partition: 'aws',
  account: '000000000000',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::000000000000:role/imported',
  dataBucket: 'imported-data',
  checkpointBucket: 'imported-checkpoints',
  artifactBucket: 'imported-artifacts',
  subnetIds: [],
  securityGroupIds: [],
};

function planOf(run: RunSpec, region: string, descriptor = NO_ENVIRONMENT): Parameters<typeof trainingJobRequest>[0] {
  const { source, sha256 = null, builtin } = run.code;
  return {
    run,
    descriptor,
    region,
    runId: run.name,
    attempt: 1,
    ...(!builtin && source !== CODE_IN_IMAGE && { code: { uri: source, sha256 } }),
    driver: { uri: `s3://${descriptor.artifactBucket}/drivers/`, hash: '' },
    configHash: '',
    resumeFrom: '',
    restartSecret: '',
  };
}

/** The text of a run file: a comment with the source and the values that were not imported, followed by the options. */
function runFileText(draft: Draft, notCarried: readonly NotCarried[], source: string): string {
  const comments = [
    `Imported from ${plainLine(source)}.`,
    ...(notCarried.length > 0 ? ['Not carried over:'] : []),
    ...notCarried.map(({ field, value, why }) => `  ${plainLine(field)} = ${formatValue(value)}: ${plainLine(why)}`),
  ];
  const head = comments.map((line) => `# ${line}`.trimEnd()).join('\n');
  return `${head}\n${yamlOf(draft)}`;
}

/** Texts with characters that are not visible are quoted and escaped, because a terminal does not receive these characters. */
function yamlOf(draft: Draft): string {
  const document = new Document(draft);
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && plainJson(scalar.value) !== scalar.value) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return plainJson(document.toString({ lineWidth: 0 }));
}
