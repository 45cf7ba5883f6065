import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { checkEnvironment } from '../rules/environment';
import { checkEnvironmentSupport } from '../rules/environment-support';
import { type EnvironmentFile, type EnvironmentSpec, resolveEnvironments } from '../spec/environment-file';
import { EMPTY_LOCK, type ImageLock, loadImageLock, lockedBaseUri, lockFileOf } from '../spec/image-lock';
import { hasErrors, type Issue } from '../spec/issue';
import { type Loaded, loadEnvironment, loadRun } from '../spec/load';
import type { RunSpec } from '../spec/run-spec';
import type { RunSubmission } from './environment-stack';
import { type RegisteredRunFile, submissionIssues, submissionsOf } from './submissions';

/** One stack to make. */
export interface EnvironmentToMake {
  spec: EnvironmentSpec;
  /** Base of the image by the digest of the lock file; undefined without one. */
  baseImageUri?: string;
  /** The runs that the environment file names. */
  runs: RunSpec[];
  /** Those of them that a deploy submits. */
  submissions: RunSubmission[];
}

/** A line for people, with the file that it is about. */
export interface Problem {
  level: Issue['level'];
  text: string;
}

export interface EnvironmentsRead {
  environments: EnvironmentToMake[];
  problems: Problem[];
}

/**
 * Environment files and the run files that they name, one entry per Region. Never throws: everything wrong with any of them
 * is among the problems.
 * @param from.folder folder with environment files; default `environments`
 * @param from.file one environment file instead of a folder
 */
export async function readEnvironments(from: { folder?: unknown; file?: unknown }): Promise<EnvironmentsRead> {
  const read: EnvironmentsRead = { environments: [], problems: [] };
  for (const file of filesOf(from, read.problems)) await readEnvironment(file, read);
  return read;
}

function filesOf({ folder, file }: { folder?: unknown; file?: unknown }, problems: Problem[]): string[] {
  if (typeof file === 'string') return [file];
  const at = typeof folder === 'string' ? folder : 'environments';
  const names = existsSync(at)
    ? readdirSync(at).filter((name) => /\.ya?ml$/.test(name) && !/\.lock\.ya?ml$/.test(name))
    : [];
  if (names.length === 0)
    problems.push({
      level: 'error',
      text: `environments: must be a folder with environment files, got ${at}; pass -c environment=FILE or write one with slipway init`,
    });
  return names.sort().map((name) => path.join(at, name));
}

async function readEnvironment(file: string, read: EnvironmentsRead): Promise<void> {
  const text = readText(file, read.problems);
  if (text === undefined) return;
  const loaded = loadEnvironment(text);
  const rules = loaded.value ? [...checkEnvironment(loaded.value), ...checkEnvironmentSupport(loaded.value)] : [];
  const issues = [...loaded.issues, ...rules];
  read.problems.push(...lines(file, issues, loaded));
  if (!loaded.value || hasErrors(issues)) return;
  const specs = resolveEnvironments(loaded.value);
  const lock = readLock(file, read.problems);
  read.problems.push(...unlocked(file, specs, lock));
  const named = readRuns(file, loaded.value, specs, read.problems);
  // Archives are only made of what will be deployed.
  if (read.problems.some(({ level }) => level === 'error')) return;
  const runs = named.map(({ run }) => run);
  for (const spec of specs) {
    const baseImageUri = lockedBaseUri(lock, spec.region, spec.image.base);
    read.environments.push({ spec, baseImageUri, runs, submissions: await submissionsOf(spec, named) });
  }
}

function readLock(environment: string, problems: Problem[]): ImageLock {
  const file = lockFileOf(environment);
  const text = existsSync(file) ? readText(file, problems) : undefined;
  if (text === undefined) return EMPTY_LOCK;
  const loaded = loadImageLock(text);
  problems.push(...loaded.issues.map(({ level, message }) => ({ level, text: `${file}: ${level}: ${message}` })));
  return loaded.value ?? EMPTY_LOCK;
}

/** A base that has no published tag is built from a digest or not at all. */
function unlocked(file: string, specs: readonly EnvironmentSpec[], lock: ImageLock): Problem[] {
  return specs
    .filter(({ image, region }) => image.base === 'cuda' && !image.uri && !lockedBaseUri(lock, region, 'cuda'))
    .map(({ region }) => ({
      level: 'error',
      text:
        `${file}: error: image.base: must have a digest for ${region} in ${lockFileOf(file)}, got cuda; ` +
        `run slipway lock ${file} --base <ECR image with its tag>`,
    }));
}

function readRuns(
  environment: string,
  file: EnvironmentFile,
  specs: readonly EnvironmentSpec[],
  problems: Problem[],
): RegisteredRunFile[] {
  return (file.runs ?? []).flatMap((entry) => {
    const runFile = path.join(path.dirname(environment), entry.file);
    const text = readText(runFile, problems);
    if (text === undefined) return [];
    const loaded = loadRun(text);
    problems.push(...lines(runFile, loaded.issues, loaded));
    if (!loaded.value) return [];
    const registered = { entry, file: runFile, text, run: loaded.value };
    problems.push(...lines(runFile, submissionIssues(file, specs, registered), loaded));
    return registered;
  });
}

function readText(file: string, problems: Problem[]): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    problems.push({ level: 'error', text: `${file}: must be a readable file, got ${why}; check the path` });
    return undefined;
  }
}

function lines(file: string, issues: readonly Issue[], { positionOf }: Loaded<unknown>): Problem[] {
  return issues.map(({ level, path: at, message }) => {
    const position = positionOf(segmentsOf(at));
    const place = position ? `${file}:${position.line}:${position.column}` : file;
    return { level, text: `${place}: ${level}: ${message}` };
  });
}

/** `quotas.require[0].count` as the keys that lead there. */
function segmentsOf(text: string): (string | number)[] {
  return [...text.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(([, quoted, index, word]) =>
    index === undefined ? (quoted ?? word ?? '') : Number(index),
  );
}
