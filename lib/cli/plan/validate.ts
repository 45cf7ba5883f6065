import { existsSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { bareIssue, hasErrors } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import { parsePath } from '../../core/config/reading/overrides';
import type { RunSpec } from '../../core/config/run-spec';
import { programArguments } from '../../core/job/job-file';
import { type FileIssue, readEnvironmentFile } from '../../shared/environment/read-environment-file';
import { EXIT, UsageError } from '../exit';
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
import { runTrainerModule } from '../trainer-module';

type ValidateOptions = CommonOptions & PreviewOptions;

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
    // Another file is a lock file, or a run file that an environment names.
    const named = issues.map((found) => ({ ...bareIssue(found), ...(found.file !== file && { file: found.file }) }));
    terminal.out(json({ ok, issues: named, preview }));
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

function printIssues(file: string, issues: readonly FileIssue[], terminal: Terminal): void {
  for (const found of issues) terminal.err(issueLine(found, found.file, () => found.position));
  const count = (level: string) => issues.filter((i) => i.level === level).length;
  const [errors, warnings] = [count('error'), count('warning')];
  terminal.err(
    errors > 0 ? `${file}: ${errors} error(s), ${warnings} warning(s)` : `${file}: valid, ${warnings} warning(s)`,
  );
}

interface PreviewOptions {
  /** File or folder with rows. */
  data?: string;
  /** @default - the byte tokenizer, if the run uses it */
  tokenizer?: string;
  /** File for a page. @default - no page */
  html?: string;
  /** @default python3 */
  python?: string;
  /** Number of rows whose tokens are counted; the last line is the result as JSON. @default - none */
  measure?: number;
}

/** The rows of a data set are rendered by the template of a model, and both may be anybody's. */
const LIMITS = { seconds: 300, gib: 4 };

/**
 * What the tokenise step of a run would train in the first rows of a file. The step itself renders and masks them, so this needs Python on
 * this machine.
 * @throws UsageError for options, and Refusal for rows that the step would refuse
 */
export function previewData(run: RunSpec | undefined, options: PreviewOptions, colours: boolean): string {
  if (run?.code.builtin !== 'builtin-tokenize')
    throw new UsageError(
      '--data: must be used with a run file with code.source builtin-tokenize, got another; name one',
    );
  if (options.tokenizer && !existsSync(options.tokenizer))
    throw new UsageError(
      `--tokenizer: must be a tokenizer.json on this machine, got ${options.tokenizer}; name a file`,
    );
  const words = [...programArguments(run), ...localFiles(run, options), '--data', options.data ?? ''];
  if (options.html) words.push('--html', options.html);
  if (options.measure) words.push('--measure', String(options.measure));
  if (colours && pc.isColorSupported) words.push('--colours');
  return runTrainerModule('tokenize.preview', words, {
    python: options.python,
    packages: options.tokenizer ? ['jinja2', 'tokenizers'] : ['jinja2'],
    limits: LIMITS,
    rule: 'data/preview',
    path: '--data',
  });
}

/** Arguments that replace paths in the container, which this machine does not have. */
function localFiles({ code, tokenizer = {} }: RunSpec, options: PreviewOptions): string[] {
  const { tokenizer: inContainer = 'byte' } = code.arguments;
  if (!options.tokenizer && inContainer !== 'byte')
    throw new UsageError(
      `--tokenizer: must be the tokenizer.json of the run on this machine, which has no ${inContainer}; add --tokenizer FILE`,
    );
  const { chatTemplate } = tokenizer;
  const words = options.tokenizer ? ['--tokenizer', options.tokenizer] : [];
  if (!chatTemplate || /\{[{%]/.test(chatTemplate)) return words;
  const beside = path.join(path.dirname(options.tokenizer ?? '.'), path.basename(chatTemplate));
  if (!existsSync(beside))
    throw new UsageError(
      `--tokenizer: must have ${path.basename(chatTemplate)} beside it, got no ${beside}; copy it there`,
    );
  return [...words, '--chat-template', beside];
}
