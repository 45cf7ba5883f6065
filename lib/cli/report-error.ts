import type { FileIssue } from '../environment/read-environment-file';
import { bareIssue, type Issue } from '../spec/issue';
import { EXIT, Refusal, RunFailed, ServiceError, UsageError } from './exit';
import { issueLine, json, type Terminal } from './terminal';

/** Words for a failure and its exit code. A stack trace only with SLIPWAY_DEBUG=1. */
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

/** A refusal of an environment file names the file and the place of each finding: its lock and its runs are other files. */
const lineOf = (found: Issue & Partial<FileIssue>, asked: string): string =>
  issueLine(found, found.file ?? asked, () => found.position);
