import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isCancel, type Option, select, text } from '@clack/prompts';
import { findInstanceType, INSTANCE_TYPES, nearestInstanceTypes } from '../../core/catalog/instances/instances';
import { nearest } from '../../core/catalog/nearest';
import { REGIONS } from '../../core/catalog/regions';
import { teamName } from '../../core/config/environment/people';
import { orList } from '../../core/config/issue';
import { makeFolder, makeWritableFolder } from '../../shared/local/make-folder';
import { EXIT, UsageError } from '../exit';
import { writing } from '../page-file';
import { json, quoted, type Terminal } from '../terminal';
import {
  type NewFile,
  PACKAGE_FILE,
  packageFile,
  packageProblem,
  projectFiles,
  runFiles,
  type Vendored,
  vendored,
} from './project';

const CI_SYSTEMS = ['github', 'gitlab'] as const;
export type CiSystem = (typeof CI_SYSTEMS)[number];

/** Options of `slipway init`; on a terminal it asks for missing ones. */
export interface InitOptions {
  region?: string;
  team?: string;
  instanceType?: string;
  ci?: string;
  /** CDK Pipelines across accounts, instead of deploys from one account. */
  pipeline?: boolean;
  /** Where npm gets the slipway package from. */
  package?: string;
  /** False: no package-lock.json, for other package managers. */
  lockfile?: boolean;
  run?: boolean;
  yes?: boolean;
  json?: boolean;
}

/** The choices from which a project is generated. */
export type Answers = typeof DEFAULTS & Pick<InitOptions, 'pipeline' | 'lockfile'> & { ci?: CiSystem };

const DEFAULTS = { region: 'us-west-2', team: 'nlp', instanceType: 'ml.p5.48xlarge' };

/** The options, completed by a person's answers on a terminal; `--yes` and `--json` use the defaults. */
async function answersOf(options: InitOptions): Promise<Answers> {
  requireValid(options);
  const asks = process.stdin.isTTY && !options.yes && !options.json;
  const ask = async (name: keyof typeof DEFAULTS, question: () => Promise<string | symbol>): Promise<string> => {
    const given = options[name];
    if (given !== undefined || !asks) return given ?? DEFAULTS[name];
    const answer = await question();
    if (isCancel(answer)) throw new UsageError('init: not confirmed; nothing was written');
    return String(answer);
  };
  return {
    region: await ask('region', () =>
      select({ message: 'Region', options: REGION_OPTIONS, initialValue: 'us-west-2' }),
    ),
    team: await ask('team', () =>
      text({ message: 'Team', initialValue: DEFAULTS.team, validate: (name) => teamProblem(name ?? '') }),
    ),
    instanceType: await ask('instanceType', () => select({ message: 'Instance type', options: TYPE_OPTIONS })),
    ci: options.ci as CiSystem | undefined,
    pipeline: options.pipeline,
    lockfile: options.lockfile,
  };
}

const REGION_OPTIONS: Option<string>[] = Object.keys(REGIONS).map((value) => ({ value, label: value }));
const gpuTypes = INSTANCE_TYPES.filter(({ accelerator }) => accelerator?.kind === 'gpu');
const TYPE_OPTIONS: Option<string>[] = gpuTypes.map(({ name }) => ({ value: name, label: name }));

function teamProblem(team: string): string | undefined {
  const { error } = teamName.safeParse(team);
  return error && `${error.issues[0]?.message}, got ${team}; choose a shorter name such as nlp`;
}

function requireValid({ region, team, instanceType, ci, pipeline, package: source }: InitOptions): void {
  const problems = [
    region !== undefined &&
      !(region in REGIONS) &&
      `--region: must be a region with SageMaker, got ${region}; use ${orList(nearest(region, Object.keys(REGIONS)))}`,
    team !== undefined && teamProblem(team) && `--team: ${teamProblem(team)}`,
    instanceType !== undefined && typeProblem(instanceType),
    ci !== undefined &&
      !CI_SYSTEMS.includes(ci as CiSystem) &&
      `--ci: must be ${orList(CI_SYSTEMS)}, got ${ci}; omit it for none`,
    ci !== undefined &&
      pipeline &&
      `--ci: must be absent with --pipeline, which deploys on its own, got ${ci}; omit one`,
    source !== undefined && packageProblem(source),
  ].filter((problem) => typeof problem === 'string');
  if (problems.length > 0) throw new UsageError(problems.join('\n'));
}

function typeProblem(type: string): string | undefined {
  const found = findInstanceType(type);
  if (!found)
    return `--instance-type: must be a SageMaker training instance type, got ${type}; use ${orList(nearestInstanceTypes(type))}`;
  if (!gpuTypes.includes(found))
    return `--instance-type: must have NVIDIA GPUs for the first run, got ${type}; use ml.g5.12xlarge or ml.p5.48xlarge, and write your own run file for ${type}`;
  return undefined;
}

const LOCK_FILE = 'package-lock.json';

/**
 * `slipway init [DIR]`: writes a CDK app that contains this package and uses it, with an environment file, run files and a test; with `--run`
 * only the run files. Never overwrites a file.
 */
export async function init(given: string | undefined, options: InitOptions, terminal: Terminal): Promise<number> {
  const directory = given ?? '.';
  const answers = await answersOf(options);
  const name = packageName(directory);
  const folder = path.resolve(directory);
  // Vite, with which the tests of a project run, takes these characters of a path for parts of an address.
  if (!options.run && /[#%?]/.test(folder))
    throw new UsageError(`init: must be a folder whose path has no #, % and ?, got ${folder}; choose another`);
  const files = options.run ? runFiles(answers) : projectFiles(name, answers);
  const ofNpm = options.run ? [] : [PACKAGE_FILE, ...(options.lockfile === false ? [] : [LOCK_FILE])];
  requireFree(directory, [...ofNpm, ...files.map(({ to }) => to)]);
  if (options.run) {
    const written = write(directory, files);
    if (options.json) terminal.out(json({ files: written }));
    else terminal.err(`wrote ${written.join(', ')}; next: slipway validate ${quoted(written[0] ?? '')}`);
    return EXIT.done;
  }
  writing('init', 'folder', directory, () => makeWritableFolder(directory));
  const product = vendored(directory, options.package);
  const written = write(directory, [packageFile(name, product.specifier), ...files]);
  const locked = options.lockfile !== false && writeLockfile(directory);
  const others = [...product.files, ...(locked ? [LOCK_FILE] : [])];
  const all = [...written, ...others.map((file) => path.join(directory, file))];
  if (options.json) terminal.out(json({ files: all }));
  else for (const line of summaryLines(directory, all, product, locked)) terminal.err(line);
  return EXIT.done;
}

/** Writes files; answers their paths. */
function write(directory: string, files: readonly NewFile[]): string[] {
  writing('init', 'folder', directory, () => {
    for (const { to, text } of files) {
      makeFolder(path.dirname(path.join(directory, to)));
      writeFileSync(path.join(directory, to), text);
    }
  });
  return files.map(({ to }) => path.join(directory, to));
}

/** A valid npm package name, derived from the folder: https://docs.npmjs.com/cli/v10/configuring-npm/package-json#name */
function packageName(directory: string): string {
  const name = path
    .basename(path.resolve(directory))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  return name.replace(/^-+|-+$/g, '') || 'training';
}

function requireFree(directory: string, files: readonly string[]): void {
  const taken = files.filter((file) => existsSync(path.join(directory, file)));
  if (taken.length === 0) return;
  throw new UsageError(`${directory}: must not contain ${taken.join(', ')} yet; use another folder, or remove them`);
}

function summaryLines(directory: string, files: readonly string[], product: Vendored, locked: boolean): string[] {
  const there = path.resolve(directory) === process.cwd() ? '' : `cd ${quoted(directory)} && `;
  const wheel = product.files.find((file) => file.endsWith('.whl'));
  return [
    `wrote ${files.length} files into ${directory}: ${files.map((file) => path.relative(directory, file)).join(', ')}`,
    `next: ${there}${locked ? 'npm ci' : 'npm install'} && npm test`,
    ...(wheel ? [`for notebooks and scripts: pip install ${quoted(path.join(directory, wheel))}`] : []),
  ];
}

const LOCKFILE_WORDS = [
  'install',
  '--package-lock-only',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
];

/** Writes package-lock.json, with which `npm ci` installs the same on every machine. @returns whether npm could */
function writeLockfile(project: string): boolean {
  const { status } = spawnSync('npm', LOCKFILE_WORDS, {
    cwd: project,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  return status === 0;
}
