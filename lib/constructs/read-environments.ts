import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { checkEnvironment } from '../rules/environment';
import { checkEnvironmentSupport } from '../rules/environment-support';
import { type EnvironmentFile, type EnvironmentSpec, resolveEnvironments } from '../spec/environment-file';
import { hasErrors, type Issue } from '../spec/issue';
import { type Loaded, loadEnvironment, loadRun } from '../spec/load';
import type { RunSpec } from '../spec/run-spec';

/** One stack to make. */
export interface EnvironmentToMake {
  spec: EnvironmentSpec;
  /** The runs that the environment file names. */
  runs: RunSpec[];
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
export function readEnvironments(from: { folder?: unknown; file?: unknown }): EnvironmentsRead {
  const read: EnvironmentsRead = { environments: [], problems: [] };
  for (const file of filesOf(from, read.problems)) readEnvironment(file, read);
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

function readEnvironment(file: string, read: EnvironmentsRead): void {
  const text = readText(file, read.problems);
  if (text === undefined) return;
  const loaded = loadEnvironment(text);
  const rules = loaded.value ? [...checkEnvironment(loaded.value), ...checkEnvironmentSupport(loaded.value)] : [];
  const issues = [...loaded.issues, ...rules];
  read.problems.push(...lines(file, issues, loaded));
  if (!loaded.value || hasErrors(issues)) return;
  const runs = readRuns(file, loaded.value, read.problems);
  read.environments.push(...resolveEnvironments(loaded.value).map((spec) => ({ spec, runs })));
}

function readRuns(environment: string, { runs = [] }: EnvironmentFile, problems: Problem[]): RunSpec[] {
  return runs.flatMap((entry) => {
    const file = path.join(path.dirname(environment), entry.file);
    const text = readText(file, problems);
    if (text === undefined) return [];
    const loaded = loadRun(text);
    problems.push(...lines(file, loaded.issues, loaded));
    return loaded.value ?? [];
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
