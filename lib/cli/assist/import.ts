import { existsSync } from 'node:fs';
import { S3Client } from '@aws-sdk/client-s3';
import { DescribeTrainingJobCommand, ListTagsCommand, SageMakerClient } from '@aws-sdk/client-sagemaker';
import { clusterUsdPerHour } from '../../core/admission';
import type { Descriptor } from '../../core/config/descriptor';
import { bareIssue, type Issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { quotaTable, runQuotaNeeds } from '../../core/quota';
import { checkRun } from '../../core/rules';
import { openObject } from '../../shared/aws/read-object';
import { awsClient } from '../aws-client';
import { calling, undefinedWhenDenied } from '../aws-errors';
import { callRegion, findDescriptor } from '../environment/environment';
import { quotaJson, quotaRows } from '../environment/quota';
import { EXIT, UsageError } from '../exit';
import { type ImportContext, type Imported, importRequest, importText } from '../import/import';
import { type ForeignRequest, findRequest } from '../import/read-request';
import { channelUri, TRAINER_CHANNEL, type TrainerFiles } from '../import/start';
import { type CommonOptions, isDescriptorFile, readDescriptor, readText } from '../inputs';
import { issueLine, json, type Terminal } from '../terminal';

const JOB_ARN = /^arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):\d{12}:training-job\/(.+)$/;
/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html */
const JOB_NAME = /^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/;

/** `slipway import JOB|ARN|FILE`: converts a job or request to a run file, and prints the verdicts of the checks. */
export async function importJob(from: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (options.set?.length)
    throw new UsageError(
      `--set: must not be given to import, got ${options.set.join(' ')}; change the run file that it prints, or give --set to validate, plan or launch`,
    );
  const descriptor = await environmentOf(options);
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

/** The environment is read only if the user names one: an import does not require it. */
async function environmentOf(options: CommonOptions): Promise<Descriptor | undefined> {
  if (options.environment === undefined) return undefined;
  return isDescriptorFile(options.environment) ? readDescriptor(options.environment) : findDescriptor(options);
}

interface Source {
  imported: Imported;
  /** Whether the job is in an account whose quotas can be read. */
  isInAccount: boolean;
}

async function readSource(from: string, options: CommonOptions, descriptor?: Descriptor): Promise<Source> {
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
  const Tags = await tagsOf(client, job.TrainingJobArn);
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

async function tagsOf(client: SageMakerClient, ResourceArn: string | undefined) {
  if (!ResourceArn) return undefined;
  const answer = await client.send(new ListTagsCommand({ ResourceArn })).catch(undefinedWhenDenied);
  return answer?.Tags;
}

interface Verdicts {
  issues: Issue[];
  /** Facts for the JSON document. */
  facts: Record<string, unknown>;
  lines: string[];
}

/** Rules, price and, for a job in the account, quotas. The code is not available yet, so rules about its files are skipped. */
async function judge(run: RunSpec, { region }: Imported, asksAccount: boolean): Promise<Verdicts> {
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
