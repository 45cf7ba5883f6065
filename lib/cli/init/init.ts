import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { EXIT, UsageError } from '../exit';
import { makeFolder, writing } from '../page-file';
import { json, type Terminal } from '../terminal';
import { answersOf, type InitOptions } from './answers';
import { type NewFile, ownVersion, projectFiles, runFile } from './project';
import { fileSpecifier, slipwaySpecifier } from './where-from';

/**
 * `slipway init [DIR]`: writes a CDK app that uses this package, with an environment file, a run file and a test; with `--run` only the run
 * file. Never overwrites a file.
 */
export async function init(directory: string, options: InitOptions, terminal: Terminal): Promise<number> {
  const answers = await answersOf(options);
  const name = packageName(directory);
  const files = options.run ? [runFile(answers)] : projectFiles(name, answers, specifier(directory, options.package));
  requireFree(directory, files);
  writing('init', 'folder', directory, () => {
    for (const { to, text } of files) {
      makeFolder(path.dirname(path.join(directory, to)));
      writeFileSync(path.join(directory, to), text);
    }
  });
  const written = files.map(({ to }) => path.join(directory, to));
  if (options.json) terminal.out(json({ files: written }));
  else for (const line of said(directory, files, options.run ?? false)) terminal.err(line);
  return EXIT.done;
}

/** A valid npm package name, derived from the folder: https://docs.npmjs.com/cli/v10/configuring-npm/package-json#name */
function packageName(directory: string): string {
  const name = path
    .basename(path.resolve(directory))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-');
  return name.replace(/^-+|-+$/g, '') || 'training';
}

/** The value of `--package` as a dependency: the path of a packed tarball or a folder, or a version. */
function specifier(directory: string, given: string | undefined): string {
  if (given === undefined) return slipwaySpecifier(directory, ownVersion());
  return existsSync(given) ? fileSpecifier(directory, given) : given;
}

function requireFree(directory: string, files: readonly NewFile[]): void {
  const taken = files.filter(({ to }) => existsSync(path.join(directory, to)));
  if (taken.length === 0) return;
  throw new UsageError(
    `${directory}: must not contain ${taken.map(({ to }) => to).join(', ')} yet; use another folder, or remove them`,
  );
}

function said(directory: string, files: readonly NewFile[], onlyRun: boolean): string[] {
  const wrote = `wrote ${files.map(({ to }) => path.join(directory, to)).join(', ')}`;
  const there = path.resolve(directory) === process.cwd() ? '' : `cd ${directory} && `;
  return onlyRun
    ? [`${wrote}; next: slipway validate ${path.join(directory, files[0]?.to ?? '')}`]
    : [wrote, `next: ${there}npm install && npm test`];
}
