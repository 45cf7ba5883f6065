import type { CommanderError } from 'commander';
import { bareIssue, type Issue } from '../core/config/issue';
import type { FileIssue } from '../shared/environment/read-environment-file';
import { EXIT, Refusal, ServiceError, UsageError } from './exit';
import { issueLine, json, type Terminal } from './terminal';

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
];
const DENIED = ['AccessDeniedException', 'AccessDenied', 'UnauthorizedOperation', 'AuthorizationError', 'Forbidden'];
const UNREACHABLE = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ECONNRESET', 'ETIMEDOUT', 'TimeoutError'];

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

/** Whether an error comes from a service, from its SDK client, or from the network to it. */
function isServiceError(error: unknown): boolean {
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
  if (CREDENTIALS.includes(name) && profile)
    return `must have valid AWS credentials, got profile ${profile} (AWS_PROFILE): ${message}; sign in with it, or name one of aws configure list-profiles`;
  if (CREDENTIALS.includes(name)) return `must have valid AWS credentials, got ${message}; sign in, or set AWS_PROFILE`;
  if (DENIED.includes(name)) return `must be permitted, got ${message}; ask the platform team for the permission`;
  if (UNREACHABLE.includes(code) || UNREACHABLE.includes(name)) {
    return `must reach the service, got ${code || name}; check the network, the region and AWS_ENDPOINT_URL`;
  }
  if (name === 'NoSuchBucket') return 'must name a bucket that exists, got one that does not; check its name';
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

/** What the verb was called with, and whether it has printed its document. */
interface ErrorContext {
  asJson: boolean;
  hasPrinted: boolean;
  file: string;
}

/**
 * Prints an error and returns its exit code: lines to stderr, or one document to stdout with `--json`. Includes the stack trace only with
 * SLIPWAY_DEBUG=1.
 */
export function reportError(error: unknown, { asJson, hasPrinted, file }: ErrorContext, terminal: Terminal): number {
  if (process.env.SLIPWAY_DEBUG === '1' && error instanceof Error) terminal.err(error.stack ?? error.message);
  const isDocument = asJson && !hasPrinted;
  const document = (issues: readonly Issue[], details = {}) =>
    terminal.out(json({ ok: false, ...details, issues: issues.map(bareIssue) }));
  if (error instanceof Refusal) {
    if (isDocument) document(error.issues, error.details);
    else for (const found of error.issues) terminal.err(lineOf(found, file));
    return EXIT.refused;
  }
  const { kind, code, message } = describe(error);
  if (isDocument) document([{ rule: `command/${kind}`, level: 'error', path: '', message }]);
  else terminal.err(`slipway: ${message}`);
  return code;
}

/** Every error is of one of these kinds; one that is of no other is a mistake in this program. */
function describe(error: unknown): { kind: string; code: number; message: string } {
  if (error instanceof UsageError) return { kind: 'usage', code: EXIT.usage, message: error.message };
  if (isServiceError(error)) {
    const { message } = error instanceof ServiceError ? error : serviceError('a call to AWS', error);
    return { kind: 'service', code: EXIT.service, message };
  }
  if (isFileError(error)) return { kind: 'file', code: EXIT.usage, message: fileMessage(error) };
  const got = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const message = `internal error, got ${got}; sorry, this is a bug of Slipway: please report it with the output of this command under SLIPWAY_DEBUG=1`;
  return { kind: 'internal', code: EXIT.internal, message };
}

/** Whether the operating system refused a call on a file, and not on a connection, which `isServiceError` recognises. */
const isFileError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error && 'errno' in error;

const fileMessage = ({ path, message }: NodeJS.ErrnoException): string =>
  `${path ?? 'file'}: must be a file that can be read and written here, got ${message}; check its path, its permissions and the space on its disk`;

/**
 * For an environment file, the line contains the file and position of each issue, because issues may also be in its lock file and run
 * files.
 */
const lineOf = (found: Issue & Partial<FileIssue>, requested: string): string =>
  issueLine(found, found.file ?? requested, () => found.position);

/** Our own messages for command line errors; `$1` is the part that commander names, HEAD is the verb. */
const WORDS: Readonly<Record<string, readonly [found: RegExp, text: string]>> = {
  'commander.unknownCommand': [/command '(.*?)'/, '$1: must be a verb of VERB, got an unknown one'],
  'commander.unknownOption': [/option '(.*?)'/, '$1: must be an option of VERB, got an unknown one'],
  'commander.missingArgument': [/argument '(.*?)'/, 'HEAD: must be given <$1>, got nothing'],
  'commander.optionMissingArgument': [/option '(.*?)'/, '$1: must have a value, got nothing'],
  'commander.excessArguments': [/Expected (\d+ arguments?)/, 'HEAD: must have at most $1, got more'],
};

/**
 * An error in the command line, as `<option as written>: <what must hold>, got <value>; <what to do>`.
 * @param verb the verb, if it is a known one
 */
export function usageText(
  { code, message }: Pick<CommanderError, 'code' | 'message'>,
  verb: string | undefined,
): string {
  const [found, text] = WORDS[code] ?? [];
  const name = found?.exec(message)?.[1];
  const typed = verb === undefined ? 'slipway' : `slipway ${verb}`;
  if (text === undefined || name === undefined) return message.replace(/^error: /, '');
  const meant = /\(Did you mean (?:one of )?(.+)\?\)/.exec(message)?.[1];
  return `${text
    .replace('$1', () => name)
    .replace('HEAD', verb ?? 'slipway')
    .replace('VERB', typed)}; ${meant ? `did you mean ${meant}?` : `see ${typed} --help`}`;
}
