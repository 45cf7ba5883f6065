import type { CommanderError } from 'commander';
import { bareIssue, type Issue } from '../core/config/issue';
import type { FileIssue } from '../shared/environment/read-environment-file';
import { isServiceError, serviceError } from './aws-errors';
import { EXIT, Interrupted, Refusal, ServiceError, UsageError } from './exit';
import { issueLine, json, type Terminal } from './terminal';

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
  if (error instanceof Interrupted) return { kind: 'interrupted', code: EXIT.interrupted, message: error.message };
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

const fileMessage = ({ path, message, syscall }: NodeJS.ErrnoException): string =>
  `${path ?? (syscall === 'write' ? 'standard output' : 'file')}: must be a file that can be read and written here, got ${message}; check its path, its permissions and the space on its disk`;

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
  'commander.missingMandatoryOptionValue': [/option '(\S+).*?'/, '$1: must be given to VERB, got nothing'],
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
