import type { IncomingMessage } from 'node:http';
import { ServiceError } from './service-error';

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

/** Who signed a request. */
export interface Caller {
  accessKeyId: string;
  sessionToken?: string;
  /** ARN of the principal; null when the key is unknown and nothing is enforced. */
  arn: string | null;
}

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
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch {
    // Handled below, like any other body that is not an object.
  }
  throw new ServiceError('SerializationException', 'The request body must be a JSON object');
}
