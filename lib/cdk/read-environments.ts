import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isEnvironmentFileName, lockedBaseUri } from '../core/config/environment/image';
import type { EnvironmentSpec } from '../core/config/environment-file';
import type { Issue } from '../core/config/issue';
import type { RunSpec } from '../core/config/run-spec';
import { COMPRESSED, codeArchive } from '../shared/archive/archive';
import {
  type EnvironmentOnDisk,
  type FileIssue,
  readEnvironmentFile,
} from '../shared/environment/read-environment-file';
import { type RegisteredRunFile, teamOf } from '../shared/environment/registered-runs';
import type { RunSubmission } from './launcher/registered-run';

/** One stack to create. */
export interface EnvironmentToMake {
  /** The environment in one Region, defaults filled in. */
  spec: EnvironmentSpec;
  /** Base of the image, by the digest in the lock file. @default - the base in the environment file, by its tag */
  baseImageUri?: string;
  /** The runs that the environment file names. */
  runs: RunSpec[];
  /** The runs that a deploy submits. */
  submissions: RunSubmission[];
}

/** A message for people, including the file that it concerns. */
export interface Problem {
  /** Errors prevent the deploy; warnings do not. */
  level: Issue['level'];
  /** What is wrong, where, and what to do. */
  text: string;
}

/** The environments of an environment file, and the problems found. */
export interface EnvironmentsRead {
  /** One per Region; empty if there are errors. */
  environments: EnvironmentToMake[];
  /** Errors first. */
  problems: Problem[];
}

/**
 * Reads environment files and the run files that they name; returns one entry per Region. Never throws: all errors are among the problems.
 * @param from.folder folder whose environment files are all read; takes precedence over `file`, which may have a default in cdk.json
 * @param from.file one environment file; without both, the files of the folder `environments`
 */
export async function readEnvironments(from: { folder?: unknown; file?: unknown }): Promise<EnvironmentsRead> {
  const read: EnvironmentsRead = { environments: [], problems: [] };
  const files = filesOf(from, read.problems).flatMap((file) => onDisk(file, read.problems));
  read.problems.push(...takenStacks(files));
  // Archives are only created for runs that will be deployed.
  if (read.problems.some(({ level }) => level === 'error')) return read;
  for (const { disk } of files) read.environments.push(...(await environmentsOf(disk)));
  return read;
}

function filesOf({ folder, file }: { folder?: unknown; file?: unknown }, problems: Problem[]): string[] {
  if (typeof file === 'string' && typeof folder !== 'string') return [file];
  const at = typeof folder === 'string' ? folder : 'environments';
  const names = existsSync(at) ? readdirSync(at).filter(isEnvironmentFileName) : [];
  if (names.length === 0)
    problems.push({
      level: 'error',
      text: `environments: must be a folder with environment files, got ${at}; pass -c environment=FILE or write one with slipway init`,
    });
  return names.sort().map((name) => path.join(at, name));
}

interface EnvironmentFileOnDisk {
  file: string;
  disk: EnvironmentOnDisk;
}

function onDisk(file: string, problems: Problem[]): EnvironmentFileOnDisk[] {
  try {
    const disk = readEnvironmentFile(file, readFileSync(file, 'utf8'));
    problems.push(...disk.issues.map(lineOf));
    return [{ file, disk }];
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    problems.push({ level: 'error', text: `${file}: must be a readable file, got ${why}; check the path` });
    return [];
  }
}

/** Two files must not define the same stack: the second would use the names of the first. */
function takenStacks(files: readonly EnvironmentFileOnDisk[]): Problem[] {
  const makers = files.flatMap(({ file, disk }) => disk.specs.map(({ name, region }) => ({ file, name, region })));
  return makers.flatMap(({ file, name, region }, i) => {
    const first = makers.findIndex((other) => other.name === name && other.region === region);
    const text = `${file}: error: name: must be another name than that of ${makers[first]?.file} in ${region}, got ${name}; rename one, or deploy one with -c environment=FILE`;
    return first === i ? [] : [{ level: 'error' as const, text }];
  });
}

function environmentsOf({ specs, lock, runs }: EnvironmentOnDisk): Promise<EnvironmentToMake[]> {
  return Promise.all(
    specs.map(async (spec) => ({
      spec,
      baseImageUri: lockedBaseUri(lock, spec.region, spec.image.base),
      runs: runs.map(({ run }) => run),
      submissions: await submissionsOf(spec, runs),
    })),
  );
}

function lineOf({ file, position, level, message }: FileIssue): Problem {
  const place = position ? `${file}:${position.line}:${position.column}` : file;
  return { level, text: `${place}: ${level}: ${message}` };
}

/** The runs that the deploy of one Region submits, with the current content of their code. */
function submissionsOf(spec: EnvironmentSpec, runs: readonly RegisteredRunFile[]): Promise<RunSubmission[]> {
  const here = runs.filter(
    ({ entry }) => entry.submit === 'on-change' && (entry.region ?? spec.region) === spec.region,
  );
  return Promise.all(
    here.map(async ({ run, file, text }) => ({
      run,
      team: teamOf(run, Object.keys(spec.teams)),
      runFile: text,
      code: await codeArchive(run, file, COMPRESSED),
    })),
  );
}
