import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '..', '..');

/** A version of the product as files, with its handlers built. */
export interface Version {
  folder: string;
  /** Full id of its commit. */
  commit: string;
  /** Lines of an environment file without which `cdk destroy` is refused. */
  destroyable: string;
}

/** The working tree; `npm run build` has made its bundles. */
export function thisVersion(): Version {
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  return { folder: ROOT, commit, destroyable: 'protection: { terminationProtection: false }\n' };
}

/** Puts a commit into a folder and builds it there, with the packages of this checkout where they are the same versions, else with its own. */
export function checkedOut(commit: string, folder: string): Version {
  mkdirSync(folder, { recursive: true });
  const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, maxBuffer: 1 << 28 });
  const archive = git('archive', commit);
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  if (hasItsPackages(folder)) symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  else {
    const words = 'ci --prefer-offline --ignore-scripts --no-audit --no-fund'.split(' ');
    execFileSync('npm', words, { cwd: folder, stdio: 'ignore' });
  }
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'ignore' });
  return { folder, commit: git('rev-parse', commit).toString().trim(), destroyable: '' };
}

/** Whether this checkout holds every package that another one locks, in its version. */
function hasItsPackages(folder: string): boolean {
  const packagesOf = (root: string) =>
    (JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as Lock).packages;
  const ours = packagesOf(ROOT);
  return Object.entries(packagesOf(folder)).every(
    ([name, { version }]) => name === '' || ours[name]?.version === version,
  );
}

interface Lock {
  packages: Record<string, { version?: string }>;
}
