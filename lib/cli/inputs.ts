import { readFileSync } from 'node:fs';
import { codeContext } from '../archive/code-context';
import { type FetchedConfig, withModelConfig } from '../archive/model-config';
import { checkRun } from '../rules';
import { refuseUnsupported } from '../rules/model/support';
import { checkPartialRun } from '../rules/partial-file';
import type { Descriptor } from '../spec/descriptor';
import { hasErrors, type Issue } from '../spec/issue';
import { isEnvironmentFile, type Loaded, type LoadedRun, loadDescriptor, loadRun } from '../spec/load';
import type { RuleContext } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';
import { Refusal, UsageError } from './exit';

/** Options that every verb takes. */
export interface CommonOptions {
  environment?: string;
  region?: string;
  set?: string[];
  json?: boolean;
  /** A `model.config` that lies in S3, once it is fetched. */
  modelConfig?: FetchedConfig;
}

/** Text of a file the user named, or a UsageError in plain words. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new UsageError(`${file}: must be a readable file, got ${UNREADABLE[code] ?? message}; check the path`);
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EISDIR: 'a folder',
  EACCES: 'one that you may not read',
};

/** Whether `--environment` names a descriptor file; otherwise it is a name that SSM knows. */
export const isDescriptorFile = (environment: string | undefined): boolean => environment?.endsWith('.json') ?? false;

/** The descriptor in a file; its issues are a refusal of their own. */
export function readDescriptor(file: string): Descriptor {
  const loaded = loadDescriptor(readText(file));
  if (!loaded.value)
    throw new Refusal(
      loaded.issues.map((i) => ({ ...i, path: `environment.${i.path}`, message: `${file}: ${i.message}` })),
    );
  return loaded.value;
}

/** A run file after schema and rules, with everything that was found on the way. */
export interface CheckedRun {
  /** The run file, with the text of its `model.config` in it. */
  text: string;
  /** `--set` overrides that are still to be applied to the text. */
  overrides: string[];
  run?: RunSpec;
  issues: Issue[];
  positionOf: Loaded<RunSpec>['positionOf'];
}

/** A run file as it was read, with what is known of the code beside it. */
export interface ReadRun {
  text: string;
  overrides: string[];
  loaded: LoadedRun;
  code: RuleContext;
}

/**
 * Reads a run file and the folder of its code, and judges nothing yet.
 * @throws UsageError for an environment file: one sentence, and not one for each of its options
 */
export function readRunFile(file: string, options: CommonOptions): ReadRun {
  const given = readText(file);
  if (isEnvironmentFile(given))
    throw new UsageError(`${file}: must be a run file, got an environment file; name one such as runs/starter.yaml`);
  const { text, overrides } = withModelConfig(file, given, options.set, options.modelConfig);
  const loaded = loadRun(text, overrides);
  const run = loaded.value ?? loaded.partial?.versions[0];
  return { text, overrides, loaded, code: run ? codeContext(run, file) : {} };
}

/** Applies every rule to a run file. The descriptor is used only when the caller has one. */
export function checkRead(
  { text, overrides, loaded, code }: ReadRun,
  options: CommonOptions,
  descriptor?: Descriptor,
): CheckedRun {
  const run = loaded.value ?? loaded.partial?.versions[0];
  const read = { text, overrides, positionOf: loaded.positionOf };
  if (!run) return { ...read, issues: loaded.issues };
  const context: RuleContext = { descriptor, region: options.region ?? descriptor?.region, ...code };
  if (!loaded.value) {
    const others = loaded.partial ? checkPartialRun(loaded.partial, context) : [];
    return { ...read, issues: [...loaded.issues, ...others] };
  }
  return { ...read, run: loaded.value, issues: [...loaded.issues, ...checkRun(loaded.value, context)] };
}

/** Reads a run file and applies every rule. */
export function checkRunFile(file: string, options: CommonOptions, descriptor?: Descriptor): CheckedRun {
  return checkRead(readRunFile(file, options), options, descriptor);
}

/** The run of a file without errors; errors are a refusal. */
export function requireChecked(checked: CheckedRun): CheckedRun & { run: RunSpec } {
  if (!checked.run || hasErrors(checked.issues)) throw new Refusal(checked.issues);
  return { ...checked, run: checked.run };
}

/** What no driver or trainer supports yet is an error of a launch. */
export function requireSupported({ issues }: CheckedRun): void {
  const judged = refuseUnsupported(issues);
  if (hasErrors(judged)) throw new Refusal(judged);
}

/** As checkRunFile, but errors are a refusal. */
export function requireRun(
  file: string,
  options: CommonOptions,
  descriptor?: Descriptor,
): CheckedRun & { run: RunSpec } {
  return requireChecked(checkRunFile(file, options, descriptor));
}
