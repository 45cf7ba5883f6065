import type { CommanderError } from 'commander';
import { bareIssue, type Issue } from '../core/config/issue';
import type { FileIssue } from '../shared/environment/read-environment-file';
import { EXIT, Refusal, RunFailed, ServiceError, UsageError } from './exit';
import { issueLine, json, type Terminal } from './terminal';

/** Prints an error and returns its exit code. Includes the stack trace only with SLIPWAY_DEBUG=1. */
export function reportError(error: unknown, context: { asJson: boolean; file: string }, terminal: Terminal): number {
  if (process.env.SLIPWAY_DEBUG === '1' && error instanceof Error) terminal.err(error.stack ?? error.message);
  if (error instanceof Refusal) {
    if (context.asJson) terminal.out(json({ ok: false, ...error.details, issues: error.issues.map(bareIssue) }));
    else for (const found of error.issues) terminal.err(lineOf(found, context.file));
    return EXIT.refused;
  }
  const message = error instanceof Error ? error.message : String(error);
  terminal.err(`slipway: ${message}`);
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof RunFailed) return EXIT.runFailed;
  if (error instanceof ServiceError) return EXIT.service;
  return EXIT.service;
}

/**
 * For an environment file, the line contains the file and position of each issue, because issues may also be in its lock file and run
 * files.
 */
const lineOf = (found: Issue & Partial<FileIssue>, asked: string): string =>
  issueLine(found, found.file ?? asked, () => found.position);

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
