import { bareIssue, hasErrors } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import { parsePath } from '../../core/config/reading/overrides';
import type { RunSpec } from '../../core/config/run-spec';
import { type FileIssue, readEnvironmentFile } from '../../shared/environment/read-environment-file';
import { EXIT } from '../exit';
import { withS3Config } from '../hub/fetched';
import {
  type CommonOptions,
  checkRunFile,
  type GivenFile,
  isDescriptorFile,
  readDescriptor,
  readGiven,
} from '../inputs';
import { issueLine, json, type Terminal } from '../terminal';
import { type PreviewOptions, previewData } from './preview-data';

export type ValidateOptions = CommonOptions & PreviewOptions;

/** `slipway validate FILE`: checks schema and rules; offline except for a `model.config` in S3 and sources `hf:`. */
export async function validate(file: string, options: ValidateOptions, terminal: Terminal): Promise<number> {
  const given = readGiven(file);
  if (options.environment !== undefined && !isDescriptorFile(options.environment))
    terminal.err(
      'rules about the environment are left out: they need its descriptor; give --environment the file (.json), or use slipway preflight',
    );
  const { issues, run } = findIssues(given, await withS3Config(given, options));
  const ok = !hasErrors(issues);
  if (options.json) {
    const preview = options.data !== undefined && ok ? previewData(run, options, false) : undefined;
    terminal.out(json({ ok, issues: issues.map((found) => jsonIssue(found, file)), preview }));
  } else {
    printIssues(file, issues, terminal);
    if (options.data !== undefined && ok) terminal.out(previewData(run, options, true));
  }
  return ok ? EXIT.done : EXIT.refused;
}

function findIssues(given: GivenFile, options: CommonOptions): { issues: FileIssue[]; run?: RunSpec } {
  const { file, text } = given;
  if (isEnvironmentFile(text))
    return { issues: readEnvironmentFile(file, text, options.set).issues.map(withoutNeighbours) };
  // The rules are the same offline: only a descriptor file contains information about the environment.
  const descriptor =
    options.environment && isDescriptorFile(options.environment) ? readDescriptor(options.environment) : undefined;
  const { issues, positionOf, run } = checkRunFile(given, options, descriptor);
  return {
    issues: issues.map((found) => ({ ...found, file, position: positionOf(parsePath(found.path) ?? []) })),
    run,
  };
}

/** A file may be checked without its run files, and before `slipway preflight --lock`: only a deploy needs them. */
const withoutNeighbours = (found: FileIssue): FileIssue => (found.isAbsent ? { ...found, level: 'warning' } : found);

/** Contains `file` only if it differs from the given one: a lock file, or a run file that an environment names. */
function jsonIssue(found: FileIssue, requested: string): object {
  return { ...bareIssue(found), ...(found.file !== requested && { file: found.file }) };
}

function printIssues(file: string, issues: readonly FileIssue[], terminal: Terminal): void {
  for (const found of issues) terminal.err(issueLine(found, found.file, () => found.position));
  const count = (level: string) => issues.filter((i) => i.level === level).length;
  const [errors, warnings] = [count('error'), count('warning')];
  terminal.err(
    errors > 0 ? `${file}: ${errors} error(s), ${warnings} warning(s)` : `${file}: valid, ${warnings} warning(s)`,
  );
}
