import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
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

/** Puts a commit into a folder and builds it. Its packages are the ones of this checkout, which must hold them in its versions. */
export function checkedOut(commit: string, folder: string): Version {
  mkdirSync(folder, { recursive: true });
  const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, maxBuffer: 1 << 28 });
  const archive = git('archive', commit);
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  requirePackages(folder);
  const modules = path.join(folder, 'node_modules');
  if (!existsSync(modules)) symlinkSync(path.join(ROOT, 'node_modules'), modules);
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'ignore' });
  return { folder, commit: git('rev-parse', commit).toString().trim(), destroyable: '' };
}

function requirePackages(folder: string): void {
  const packagesOf = (root: string) =>
    (JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as Lock).packages;
  const ours = packagesOf(ROOT);
  const other = Object.entries(packagesOf(folder)).filter(
    ([name, { version }]) => name !== '' && ours[name]?.version !== version,
  );
  if (other.length === 0) return;
  const names = other.map(([name, { version }]) => `${name} ${version}`).slice(0, 5);
  throw new Error(`packages: this checkout must have those of ${folder}, got others for ${names.join(', ')}`);
}

interface Lock {
  packages: Record<string, { version?: string }>;
}
