import { existsSync } from 'node:fs';
import path from 'node:path';
import { publishedBaseUri } from '../../core/catalog/images/images';
import { REGIONS } from '../../core/catalog/regions';
import {
  EMPTY_LOCK,
  type ImageLock,
  loadImageLock,
  lockedBaseUri,
  lockFileOf,
} from '../../core/config/environment/image';
import { type EnvironmentFile, type EnvironmentSpec, resolveEnvironments } from '../../core/config/environment-file';
import { hasErrors, type Issue, issue } from '../../core/config/issue';
import { type Loaded, loadEnvironment, loadRun } from '../../core/config/load';
import { parsePath } from '../../core/config/reading/overrides';
import type { Position } from '../../core/config/reading/yaml-file';
import { checkEnvironment, checkPartialEnvironment } from '../../core/rules/environment';
import { withModelConfig } from '../archive/code-context';
import { isReadable, namedText } from '../archive/code-files';
import { type RegisteredRunFile, registrationIssues, submissionIssues } from './registered-runs';

/** An issue with the file that it concerns: the environment file, its lock file, or a run file that it references. */
export interface FileIssue extends Issue {
  file: string;
  position?: Position;
  /** Whether the issue is a missing file that is only required at deployment. */
  isAbsent?: boolean;
}

/** An environment file with all files next to it that a deployment reads. */
export interface EnvironmentOnDisk {
  /** Absent when the schema rejected the file. */
  value?: EnvironmentFile;
  /** One per region; empty when `value` is absent. */
  specs: EnvironmentSpec[];
  lock: ImageLock;
  /** The run files that could be read. */
  runs: RegisteredRunFile[];
  /** Issues of all files, without duplicates. */
  issues: FileIssue[];
}

/**
 * Reads an environment file, its lock file and its run files, and applies all rules. `validate` and synthesis report the same issues, but
 * missing files are errors only for synthesis. Never throws.
 * @param overrides `--set path=value`
 */
export function readEnvironmentFile(file: string, text: string, overrides: readonly string[] = []): EnvironmentOnDisk {
  const loaded = loadEnvironment(text, overrides);
  const { value } = loaded;
  const specs = value ? resolveEnvironments(value) : [];
  const rules = value ? checkEnvironment(value) : loaded.partial ? checkPartialEnvironment(loaded.partial) : [];
  const lock = readLock(lockFileOf(file));
  const named = readRuns(file, value ?? loaded.partial?.versions[0]);
  const registered = value ? registrationIssues(value, named.runs) : [];
  return {
    value,
    specs,
    lock: lock.value,
    runs: named.runs,
    issues: [
      ...placed(file, [...loaded.issues, ...rules], loaded),
      ...absent(placed(file, unlocked(file, specs, lock.value), loaded)),
      ...lock.issues,
      ...absent(placed(file, named.missing, loaded)),
      ...placed(file, registered, loaded),
      ...named.issues,
      ...named.runs.flatMap((run) => (value ? placed(run.file, submissionIssues(value, specs, run), run) : [])),
    ],
  };
}

function readLock(file: string): { value: ImageLock; issues: FileIssue[] } {
  if (!existsSync(file)) return { value: EMPTY_LOCK, issues: [] };
  const text = namedText(file, path.basename(file));
  if (text === undefined) {
    const found = issue('environment/lock', 'error', '', { ...whyUnread(file), got: file });
    return { value: EMPTY_LOCK, issues: [{ ...found, file }] };
  }
  const loaded = loadImageLock(text);
  return { value: loaded.value ?? EMPTY_LOCK, issues: placed(file, loaded.issues, loaded) };
}

/** A base without a published tag in a region requires a digest in the lock file. Another rule reports unknown regions. */
function unlocked(file: string, specs: readonly EnvironmentSpec[], lock: ImageLock): Issue[] {
  return specs
    .filter(({ image: { base, uri }, region }) => {
      const isFound = uri ?? lockedBaseUri(lock, region, base) ?? publishedBaseUri(base, region);
      return isFound === undefined && Object.hasOwn(REGIONS, region);
    })
    .map(({ image: { base }, region }) =>
      issue('environment/lock', 'error', 'image.base', {
        must: `must have a digest for ${region} in ${lockFileOf(file)}`,
        got: base,
        fix: `run slipway preflight ${file} --lock --base <ECR image with its tag>`,
      }),
    );
}

/** Why `namedText` has no text for a file. */
function whyUnread(file: string) {
  if (!existsSync(file)) return { must: 'must be a file that exists', fix: 'check the path' };
  if (!isReadable(file)) return { must: 'must be a file that you may read', fix: 'change its mode' };
  return {
    must: 'must be a file of at most 1 MB in the repository of this one',
    fix: 'check the path, or run git init in the folder that holds both',
  };
}

interface RunsRead {
  runs: RegisteredRunFile[];
  /** Issues of the environment file. */
  missing: Issue[];
  issues: FileIssue[];
}

function readRuns(environment: string, value: EnvironmentFile | undefined): RunsRead {
  const read: RunsRead = { runs: [], missing: [], issues: [] };
  for (const [index, entry] of (value?.runs ?? []).entries()) {
    const file = path.resolve(path.dirname(environment), entry.file);
    const shown = path.isAbsolute(entry.file) ? file : path.join(path.dirname(environment), entry.file);
    const found = namedText(environment, entry.file);
    if (found === undefined) {
      read.missing.push(issue('environment/runs', 'error', `runs[${index}].file`, { ...whyUnread(file), got: shown }));
      continue;
    }
    const { text } = withModelConfig(shown, found);
    const loaded = loadRun(text);
    read.issues.push(...placed(shown, loaded.issues, loaded));
    if (!loaded.value) continue;
    const { positionOf } = loaded;
    read.runs.push({ index, entry, file: shown, text, run: loaded.value, positionOf });
  }
  const unique = new Map(read.issues.map((found) => [`${found.file} ${found.message}`, found]));
  return { ...read, issues: [...unique.values()] };
}

function placed(file: string, issues: readonly Issue[], from: Pick<Loaded<unknown>, 'positionOf'>): FileIssue[] {
  return issues.map((found) => ({ ...found, file, position: from.positionOf(parsePath(found.path) ?? []) }));
}

const absent = (issues: readonly FileIssue[]): FileIssue[] => issues.map((found) => ({ ...found, isAbsent: true }));

/** Whether an issue prevents the deployment of the environment. */
export const isRefused = ({ value, issues }: EnvironmentOnDisk): boolean => value === undefined || hasErrors(issues);
