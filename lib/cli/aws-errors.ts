import { ServiceError } from './exit';

interface AwsError {
  name?: string;
  message?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

const CREDENTIALS = [
  'CredentialsProviderError',
  'ExpiredTokenException',
  'ExpiredToken',
  'UnrecognizedClientException',
  'InvalidClientTokenId',
  'TokenProviderError',
  'AuthFailure',
  'InvalidAccessKeyId',
  'IncompleteSignature',
];
const CLOCK = ['RequestTimeTooSkewed', 'RequestExpired', 'InvalidSignatureException', 'SignatureDoesNotMatch'];
const DENIED = ['AccessDeniedException', 'AccessDenied', 'UnauthorizedOperation', 'AuthorizationError', 'Forbidden'];
const UNREACHABLE = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNRESET',
  'ETIMEDOUT',
  'TimeoutError',
  'EgressError',
];

/** Whether a stack does not exist: CloudFormation has no separate error for this. */
export function isMissingStack(error: unknown): boolean {
  const { name, message = '' } = (error ?? {}) as AwsError;
  return name === 'ValidationError' && /does not exist/.test(message);
}

/** Whether the caller lacks the permission. S3 refuses a HEAD request without a message, with the status alone. */
export function isDenied(error: unknown): boolean {
  const { name = '', $metadata } = (error ?? {}) as AwsError;
  return DENIED.includes(name) || ($metadata?.httpStatusCode === 403 && !CREDENTIALS.includes(name));
}

/** Whether the process has no credentials that AWS accepts: every call fails in the same way. */
export const hasNoCredentials = (error: unknown): boolean =>
  CREDENTIALS.includes(((error ?? {}) as AwsError).name ?? '');

/** Whether an error comes from a service, from its SDK client, or from the network to it. */
export function isServiceError(error: unknown): boolean {
  if (error instanceof ServiceError) return true;
  if (typeof error !== 'object' || error === null) return false;
  const { name = '', code = '' } = error as AwsError;
  if ('$metadata' in error || '$fault' in error) return true;
  return [...CREDENTIALS, ...UNREACHABLE].some((word) => word === name || word === code);
}

/** For `catch`: a denied optional call results in undefined; every other error is rethrown. */
export function undefinedWhenDenied(error: unknown): undefined {
  if (!isDenied(error)) throw error;
}

/** Describes a failed call: what was requested, what went wrong, what to do. Includes the service's own message. */
export function serviceError(doing: string, error: unknown): ServiceError {
  const { name = '', code = '', message = String(error) } = (error ?? {}) as AwsError;
  const words = explain(name, code, message);
  return new ServiceError(`${doing}: ${words}`, { cause: error });
}

function explain(name: string, code: string, message: string): string {
  const { AWS_PROFILE: profile } = process.env;
  // The provider of credentials wraps the error of its own call, as text.
  if (name === 'EgressError' || message.startsWith('EgressError: ')) return message.replace('EgressError: ', '');
  if (/CERT|UNABLE_TO_(GET|VERIFY)/.test(code) || /\bcertificate\b/.test(message))
    return `must present a certificate that is trusted here, got ${message}; name a file with the certificates of your proxy in AWS_CA_BUNDLE`;
  if (CREDENTIALS.includes(name) && profile)
    return `must have valid AWS credentials, got profile ${profile} (AWS_PROFILE): ${message}; sign in with it, or name one of aws configure list-profiles`;
  if (CREDENTIALS.includes(name)) return `must have valid AWS credentials, got ${message}; sign in, or set AWS_PROFILE`;
  if (DENIED.includes(name)) return `must be permitted, got ${message}; ask the platform team for the permission`;
  if (CLOCK.includes(name))
    return `must be signed by valid credentials at the right time, got ${name}: ${message}; check the clock of this machine and the secret key`;
  if (name === 'OptInRequired')
    return `must be in a region and a service that the account has enabled, got ${message}; enable it, or name another region`;
  if (code === 'ERR_INVALID_URL')
    return 'must reach an address, got AWS_ENDPOINT_URL that is none; correct or unset it';
  if (name === 'SyntaxError')
    return 'must get an answer of AWS, got a text that is none; check the network, proxies and AWS_ENDPOINT_URL';
  if (UNREACHABLE.includes(code) || UNREACHABLE.includes(name)) {
    return `must reach the service, got ${code || name}; check the network, the region, HTTPS_PROXY and AWS_ENDPOINT_URL`;
  }
  if (name === 'NoSuchBucket') return 'must name a bucket that exists, got one that does not; check its name';
  if (name === 'TooLarge')
    return `must be small enough to be read, got one that is not: ${message}; replace it with a smaller one`;
  return `failed, got ${name ? `${name}: ` : ''}${message}; try again`;
}

/** Runs one service call and converts its errors to a ServiceError that names the operation. */
export async function calling<T>(doing: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw serviceError(doing, error);
  }
}
