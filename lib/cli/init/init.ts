import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeFolder, makeWritableFolder } from '../../shared/files/make-folder';
import { EXIT, UsageError } from '../exit';
import { writing } from '../page-file';
import { quoted } from '../quoted';
import { json, type Terminal } from '../terminal';
import { answersOf, type InitOptions } from './answers';
import { type NewFile, PACKAGE_FILE, packageFile, projectFiles, runFiles } from './project';
import { type Vendored, vendored } from './vendor';

/**
 * `slipway init [DIR]`: writes a CDK app that contains this package and uses it, with an environment file, run files and a test; with `--run`
 * only the run files. Never overwrites a file.
 */
export async function init(directory: string, options: InitOptions, terminal: Terminal): Promise<number> {
  const answers = await answersOf(options);
  const name = packageName(directory);
  const files = options.run ? runFiles(answers) : projectFiles(name, answers);
  requireFree(directory, [...(options.run ? [] : [PACKAGE_FILE]), ...files.map(({ to }) => to)]);
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
  const others = [...product.files, ...(locked ? ['package-lock.json'] : [])];
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
