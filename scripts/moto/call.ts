import * as logs from '@aws-sdk/client-cloudwatch-logs';
import * as dynamodb from '@aws-sdk/client-dynamodb';
import * as ecr from '@aws-sdk/client-ecr';
import * as events from '@aws-sdk/client-eventbridge';
import * as iam from '@aws-sdk/client-iam';
import * as kms from '@aws-sdk/client-kms';
import * as s3 from '@aws-sdk/client-s3';
import * as sns from '@aws-sdk/client-sns';
import * as sqs from '@aws-sdk/client-sqs';
import * as ssm from '@aws-sdk/client-ssm';
import * as sts from '@aws-sdk/client-sts';
import type { Emulator } from './servers';
import { ACCOUNT, REGION } from './servers';

const SDK = { dynamodb, ecr, events, iam, kms, logs, s3, sns, sqs, ssm, sts };
const CLIENTS = {
  dynamodb: dynamodb.DynamoDBClient,
  ecr: ecr.ECRClient,
  events: events.EventBridgeClient,
  iam: iam.IAMClient,
  kms: kms.KMSClient,
  logs: logs.CloudWatchLogsClient,
  s3: s3.S3Client,
  sns: sns.SNSClient,
  sqs: sqs.SQSClient,
  ssm: ssm.SSMClient,
  sts: sts.STSClient,
};

export type Service = keyof typeof SDK;
/** What earlier calls answered, under the name that the call gave. */
export type Saved = Record<string, Record<string, unknown>>;

/** One call of the list. */
export interface Call {
  service: Service;
  operation: string;
  /** Input, or how to make it of earlier answers. */
  input: object | ((saved: Saved) => object);
  /** What the call shows, when the operation alone does not say it. */
  about?: string;
  /** Name under which later calls find the answer. */
  as?: string;
}

/** What an emulator answers: the status and the error, or the members of the output by their paths. */
export interface Answer {
  status: number;
  error?: string;
  members: Record<string, string>;
}

export const nameOf = ({ service, operation, about }: Call): string =>
  `${service} ${operation}${about ? ` (${about})` : ''}`;

/** Plays the calls one after the other. */
export async function play(emulator: Emulator, calls: readonly Call[]): Promise<Answer[]> {
  const clients = new Map<Service, { send(command: unknown): Promise<unknown> }>();
  const saved: Saved = {};
  const answers: Answer[] = [];
  for (const call of calls) {
    const client = clients.get(call.service) ?? clientOf(call.service, emulator);
    clients.set(call.service, client);
    answers.push(await one(client, call, saved));
  }
  return answers;
}

function clientOf(service: Service, { endpoint }: Emulator): { send(command: unknown): Promise<unknown> } {
  const Client = CLIENTS[service] as new (options: object) => { send(command: unknown): Promise<unknown> };
  const credentials = { accessKeyId: ACCOUNT, secretAccessKey: 'test' };
  return new Client({ endpoint, region: REGION, credentials, maxAttempts: 1, forcePathStyle: true });
}

interface Output {
  $metadata?: { httpStatusCode?: number };
}

async function one(client: { send(command: unknown): Promise<unknown> }, call: Call, saved: Saved): Promise<Answer> {
  const commands = SDK[call.service] as unknown as Record<string, new (input: object) => unknown>;
  const Command = commands[`${call.operation}Command`];
  if (!Command) throw new Error(`${nameOf(call)}: must be an operation of the SDK`);
  try {
    const input = typeof call.input === 'function' ? call.input(saved) : call.input;
    const { $metadata, ...output } = (await client.send(new Command(input))) as Output & Record<string, unknown>;
    if (output.Body) output.Body = await (output.Body as { transformToString(): Promise<string> }).transformToString();
    if (call.as) saved[call.as] = output;
    return { status: $metadata?.httpStatusCode ?? 0, members: membersOf(output) };
  } catch (error) {
    const { name, $metadata } = error as Error & Output;
    return { status: $metadata?.httpStatusCode ?? 0, error: name, members: {} };
  }
}

/** Members of an output by path, with values that every answer draws again written as what they are. */
function membersOf(value: unknown, at = ''): Record<string, string> {
  if (value === undefined || value === null) return {};
  if (value instanceof Date) return { [at]: '<time>' };
  if (value instanceof Uint8Array) return { [at]: '<bytes>' };
  if (Array.isArray(value))
    return Object.assign(
      { [`${at}[]`]: String(value.length) },
      ...value.slice(0, 3).map((v, i) => membersOf(v, `${at}[${i}]`)),
    );
  if (typeof value === 'object')
    return Object.assign({}, ...Object.entries(value).map(([key, v]) => membersOf(v, at ? `${at}.${key}` : key)));
  return { [at]: normal(String(value)) };
}

const NORMAL: readonly (readonly [RegExp, string])[] = [
  [/https?:\/\/(127\.0\.0\.1|localhost|sqs\.[\w.-]+):?\d*/g, '<endpoint>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>'],
  [/\b(AROA|AKIA|ASIA|ANPA|AIDA)[A-Z0-9]{12,}/g, '<$1 id>'],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?/g, '<time>'],
  [/\b1[67]\d{8}(\d{3})?(\.\d+)?\b/g, '<time>'],
];

const normal = (text: string) => NORMAL.reduce((found, [pattern, by]) => found.replaceAll(pattern, by), text);
