import { readFileSync, statSync } from 'node:fs';
import type { Descriptor } from '../core/config/descriptor';
import { type FetchedCommits, inlineHub } from '../core/config/inline';
import { hasErrors, type Issue } from '../core/config/issue';
import { isEnvironmentFile, type Loaded, loadDescriptor, loadRun } from '../core/config/load';
import type { RuleContext } from '../core/config/rule';
import type { RunSpec } from '../core/config/run-spec';
import { checkRun } from '../core/rules';
import { checkPartialRun } from '../core/rules/partial-file';
import { codeContext, type FetchedConfig, withModelConfig } from '../shared/archive/code-context';
import { Refusal, UsageError } from './exit';

export interface CommonOptions {
  environment?: string;
  region?: string;
  set?: string[];
  json?: boolean;
  /** Content of a `model.config` in S3, once it has been downloaded. */
  modelConfig?: FetchedConfig;
  /** Commits of models and data sets of a hub, once they have been looked up. */
  fetched?: FetchedCommits;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text of a file that the user named; throws a UsageError with a readable message. */
export function readText(file: string): string {
  try {
    // Such as /dev/zero, which has no end.
    if (statSync(file).isCharacterDevice()) throw new Error('a device');
    return UTF8.decode(readFileSync(file));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw new UsageError(`${file}: must be text in UTF-8, got other bytes; save it in that encoding`);
    throw new UsageError(
      `${file || "''"}: must be a readable file, got ${UNREADABLE[code] ?? message}; check the path`,
    );
  }
}

/** A file that the user named, read once: a later edit changes neither what is checked nor what is sent. */
export interface GivenFile {
  file: string;
  text: string;
}

export const readGiven = (file: string): GivenFile => ({ file, text: readText(file) });

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EISDIR: 'a folder',
  EACCES: 'one that you are not allowed to read',
};

/** Whether `--environment` is the path of a descriptor file; otherwise it is the name of an environment in SSM. */
export const isDescriptorFile = (environment: string | undefined): boolean => environment?.endsWith('.json') ?? false;

/** Reads a descriptor from a file; throws a Refusal with its issues. */
export function readDescriptor(file: string): Descriptor {
  const loaded = loadDescriptor(readText(file));
  if (!loaded.value)
    throw new Refusal(
      loaded.issues.map((i) => ({ ...i, path: `environment.${i.path}`, message: `${file}: ${i.message}` })),
    );
  return loaded.value;
}

/** A run file after schema and rules, with all issues found so far. */
export interface CheckedRun {
  /** The run file, including the text of its `model.config`. */
  text: string;
  /** `--set` overrides that must still be applied to the text. */
  overrides: string[];
  run?: RunSpec;
  issues: Issue[];
  positionOf: Loaded<RunSpec>['positionOf'];
}

/** A run file without errors. */
export type ValidRun = Required<CheckedRun>;

/** A run file as it was read, with the facts about the code folder beside it. */
export type ReadRun = ReturnType<typeof readRunFile>;

/**
 * Parses a run file and reads its code folder, without checking them yet.
 * @throws UsageError for an environment file, with one sentence instead of one issue per option
 */
export function readRunFile({ file, text: given }: GivenFile, options: CommonOptions) {
  if (isEnvironmentFile(given))
    throw new UsageError(
      `${file}: must be a run file, got an environment file; name one such as runs/builtin/starter.yaml`,
    );
  const pinned = inlineHub(given, options.set ?? [], options.fetched ?? {});
  const { text, overrides } = withModelConfig(file, pinned.text, pinned.overrides, options.modelConfig);
  const loaded = loadRun(text, overrides);
  const run = loaded.value ?? loaded.partial?.versions[0];
  const code: RuleContext = run ? codeContext(run, file) : {};
  return { text, overrides, loaded, code };
}

/** Applies every rule to a run file. The descriptor is used if the caller has one. */
export function checkRead(
  { text, overrides, loaded, code }: ReadRun,
  options: CommonOptions,
  descriptor?: Descriptor,
): CheckedRun {
  const { value: run, partial, issues, positionOf } = loaded;
  const context: RuleContext = { descriptor, region: options.region ?? descriptor?.region, ...code };
  const found = run ? checkRun(run, context) : partial ? checkPartialRun(partial, context) : [];
  return { text, overrides, positionOf, ...(run && { run }), issues: [...issues, ...found] };
}

/** Applies every rule to a run file and its code folder. */
export function checkRunFile(given: GivenFile, options: CommonOptions, descriptor?: Descriptor): CheckedRun {
  return checkRead(readRunFile(given, options), options, descriptor);
}

/** The run of a file without errors; throws a Refusal if there are any. */
export function requireChecked(checked: CheckedRun): ValidRun {
  if (!checked.run || hasErrors(checked.issues)) throw new Refusal(checked.issues);
  return { ...checked, run: checked.run };
}

/** Like checkRunFile, but throws a Refusal for errors. */
export function requireRun(given: GivenFile, options: CommonOptions, descriptor?: Descriptor): ValidRun {
  return requireChecked(checkRunFile(given, options, descriptor));
}
