import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { REGIONS } from '../../core/catalog/regions';
import { parseJson } from '../../core/config/formats/json';
import { plainText } from '../../core/config/formats/plain-text';

/** An error that a service returns, in the AWS JSON 1.1 format. */
export class ServiceError extends Error {
  constructor(
    /** The `__type` by which clients distinguish errors. */
    readonly code: string,
    message: string,
    readonly status = 400,
  ) {
    super(message);
    this.name = code;
  }
}

/** The error of AWS for an invalid request. */
export const validationError = (message: string) => new ServiceError('ValidationException', message);

export function refuseIf(isInvalid: unknown, message: string): void {
  if (isInvalid) throw validationError(message);
}

/** One call of a JSON 1.1 API as received. */
export interface ApiCall {
  /** Prefix of X-Amz-Target: `SageMaker` or `ServiceQuotasV20190624`. */
  service: string;
  operation: string;
  input: Record<string, unknown>;
  /** From the credential scope: one server answers for every region. */
  region: string;
  account: string;
  caller: Caller;
}

export interface Caller {
  accessKeyId: string;
  sessionToken?: string;
  /** ARN of the principal; null when the key is unknown and nothing is enforced. */
  arn: string | null;
}

/** Partition of a Region: `aws`, `aws-cn`, ... */
export const partitionOf = (region: string): string => REGIONS[region]?.partition ?? 'aws';

const SCOPE = /Credential=([^/,\s]+)\/\d{8}\/([a-z0-9-]+)\/[a-z0-9-]+\/aws4_request/;

/** Access key and region of a signed request. */
export function credentialScope(headers: IncomingMessage['headers']): { accessKeyId: string; region: string } {
  const found = SCOPE.exec(headers.authorization ?? '');
  if (!found) throw new ServiceError('MissingAuthenticationTokenException', 'Missing Authentication Token', 403);
  return { accessKeyId: found[1] ?? '', region: found[2] ?? '' };
}

/** Service and operation named by X-Amz-Target. */
export function target(headers: IncomingMessage['headers']): { service: string; operation: string } {
  const [service = '', operation = ''] = String(headers['x-amz-target'] ?? '').split('.');
  if (!service || !operation) throw new ServiceError('UnknownOperationException', 'X-Amz-Target is missing', 404);
  return { service, operation };
}

/** The JSON object of a request's body; an empty body is an empty object. */
export function parseBody(body: Buffer): Record<string, unknown> {
  if (body.length === 0) return {};
  const parsed = parseJson(body.toString('utf8'));
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  throw new ServiceError('SerializationException', 'The request body must be a JSON object');
}

/** Prints an error of the sandbox; it may contain text of a job, such as the name of an object. */
export const logError = (text: string): void => {
  process.stderr.write(`sandbox: ${plainText(text)}\n`);
};

/**
 * One page of a list, according to `MaxResults` and `NextToken` of the request. The token contains the start of the next page; the last page
 * has none.
 */
export function page<T>(all: readonly T[], input: Record<string, unknown>, defaultSize: number) {
  const size = Number(input.MaxResults ?? defaultSize);
  const start = input.NextToken === undefined ? 0 : decode(String(input.NextToken));
  const end = start + size;
  return { items: all.slice(start, end), nextToken: end < all.length ? encode(end) : undefined };
}

const encode = (start: number) => Buffer.from(`from:${start}`).toString('base64url');

function decode(token: string): number {
  const found = /^from:(\d+)$/.exec(Buffer.from(token, 'base64url').toString('utf8'));
  if (!found) throw validationError('The pagination token is not valid');
  return Number(found[1]);
}

/** A shape of a botocore service model; only the fields that validation reads. */
export interface Shape {
  type: string;
  required?: string[];
  members?: Record<string, { shape: string }>;
  member?: { shape: string };
  key?: { shape: string };
  value?: { shape: string };
  enum?: string[];
  min?: number;
  max?: number;
  pattern?: string;
}

/** AWS's own description of one service: operations, and the limits of every field. */
export interface ServiceModel {
  operations: Record<string, { input?: { shape: string } }>;
  shapes: Record<string, Shape>;
}

/**
 * Reads the newest model of a service from botocore's data folder (which MiniStack installs), so that requests are validated with the
 * limits that AWS publishes and not with a copy of them.
 */
export function loadServiceModel(botocoreData: string, service: string): ServiceModel {
  const folder = path.join(botocoreData, service);
  const newest = readdirSync(folder).sort().at(-1) ?? '';
  const packed = readFileSync(path.join(folder, newest, 'service-2.json.gz'));
  return JSON.parse(gunzipSync(packed).toString('utf8')) as ServiceModel;
}
