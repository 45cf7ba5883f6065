import {
  accessSync,
  constants,
  type Dirent,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import type { CodeFile, CodeFolder } from '../../core/config/code-source';

/** What is packed of a code folder; `npm run python:types` writes the same for the Python client. */
export const CODE_FILES = {
  /** Folders that are never packed. */
  leftOut: [
    ...['.git', '__pycache__', 'node_modules', '.venv', '.slipway'],
    ...['.pytest_cache', '.ruff_cache', '.mypy_cache'],
  ],
  /** A folder with one of these is a Python environment of this machine, whatever its name. */
  environmentMarkers: ['pyvenv.cfg', 'conda-meta'],
  maxEntries: 50_000,
  /** An archive is read into memory here and on every host. */
  maxMib: 512,
  loop: ['must contain no link to itself or to a folder around it', 'remove it'],
  nowhere: ['must contain no link that leads nowhere', 'remove it'],
  unreadable: ['must contain only what you may read', 'change its mode, or move it'],
  notUtf8: ['must contain only names in UTF-8', 'rename it'],
} as const;
const { maxEntries: MAX_ENTRIES, maxMib: MAX_MIB, loop: LOOP, nowhere: NOWHERE, unreadable: UNREADABLE } = CODE_FILES;
const LEFT_OUT: ReadonlySet<string> = new Set(CODE_FILES.leftOut);
export const MAX_CODE_BYTES = MAX_MIB * 2 ** 20;

type Refused = readonly [must: string, fix: string];

/** A folder on the way: its name in the archive, and the folders around it, itself last, with links resolved. */
interface Place {
  name: string;
  around: readonly string[];
}

/**
 * The files below `folder` that belong into its archive, sorted by name, and why it cannot be packed. A link stands for what it leads to,
 * within the repository of the folder, or within the folder itself when it is in no repository; links to other places are left out.
 * test/clients compares this with the Python client.
 */
export function codeFiles(folder: string): CodeFolder<CodeFile> {
  const top = realpathSync(folder);
  const walk = new Walk(folder, repositoryOf(top) ?? top);
  walk.visit({ name: '', around: [top] });
  return walk.found();
}

/** The nearest folder with `.git` that is or contains `folder`. */
export function repositoryOf(folder: string): string | undefined {
  if (existsSync(path.join(folder, '.git'))) return folder;
  const parent = path.dirname(folder);
  return parent === folder ? undefined : repositoryOf(parent);
}

/** Whether `file` is `folder` or lies below it. */
export const isWithin = (folder: string, file: string): boolean => {
  const way = path.relative(folder, file);
  return way !== '..' && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
};

const MAX_NAMED_BYTES = 1_000_000;

/**
 * Text of a file that another file names, from its folder on: a regular file of at most 1 MB in the same repository, or where there is none in
 * the CDK app of the working folder. Undefined for other files of this machine, because the name may be somebody else's.
 */
export function namedText(by: string, name: string): string | undefined {
  try {
    const folder = realpathSync(path.dirname(path.resolve(by)));
    const [named, own] = [realpathSync(path.resolve(path.dirname(by), name)), realpathSync('.')];
    const root = repositoryOf(folder) ?? (isWithin(own, folder) && existsSync('cdk.json') ? own : folder);
    const found = statSync(named);
    const mayBeRead = isWithin(root, named) && found.isFile() && found.size <= MAX_NAMED_BYTES;
    return mayBeRead ? readFileSync(named, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}

class Walk {
  readonly #files: CodeFile[] = [];
  readonly #refused: { name: string; why: Refused }[] = [];
  readonly #outside: string[] = [];
  #entries = 0;

  constructor(
    private readonly folder: string,
    private readonly root: string,
  ) {}

  visit(place: Place): void {
    for (const entry of this.#entriesOf(place)) {
      this.#entries += 1;
      if (this.#entries > MAX_ENTRIES) return;
      this.#take(entry, place);
    }
  }

  #entriesOf({ name }: Place): Dirent[] {
    try {
      return readdirSync(path.join(this.folder, name), { withFileTypes: true });
    } catch {
      this.#refused.push({ name: name || '.', why: UNREADABLE });
      return [];
    }
  }

  #take(entry: Dirent, place: Place): void {
    const name = place.name === '' ? entry.name : `${place.name}/${entry.name}`;
    // The replacement character stands for bytes that are not UTF-8.
    if (entry.name.includes('\uFFFD')) this.#refused.push({ name, why: CODE_FILES.notUtf8 });
    else if (entry.isSymbolicLink()) this.#follow(name, place);
    else if (entry.isDirectory())
      this.#enter(name, [...place.around.slice(0, -1), path.join(place.around.at(-1) ?? '', entry.name)]);
    else if (entry.isFile()) this.#add(name);
  }

  #follow(name: string, { around }: Place): void {
    if (LEFT_OUT.has(path.posix.basename(name))) return;
    const target = this.#targetOf(name);
    if (target === undefined) return;
    const found = statSync(target);
    if (!isWithin(this.root, target)) this.#outside.push(name);
    else if (found.isFile()) this.#add(name);
    else if (!found.isDirectory() || LEFT_OUT.has(path.basename(target))) return;
    else if (around.some((folder) => isWithin(target, folder))) this.#refused.push({ name, why: LOOP });
    else this.#enter(name, [...around, target]);
  }

  #targetOf(name: string): string | undefined {
    try {
      return realpathSync(path.join(this.folder, name));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.#refused.push({ name, why: code === 'ELOOP' ? LOOP : code === 'EACCES' ? UNREADABLE : NOWHERE });
      return undefined;
    }
  }

  #enter(name: string, around: string[]): void {
    if (LEFT_OUT.has(path.posix.basename(name))) return;
    if (CODE_FILES.environmentMarkers.some((marker) => existsSync(path.join(this.folder, name, marker)))) return;
    this.visit({ name, around });
  }

  #add(name: string): void {
    const file = path.join(this.folder, name);
    if (name.endsWith('.pyc')) return;
    const { mode, size } = statSync(file);
    if (isReadable(file)) this.#files.push({ name, bytes: size, isExecutable: (mode & 0o100) !== 0 });
    else this.#refused.push({ name, why: UNREADABLE });
  }

  found(): CodeFolder<CodeFile> {
    const mib = Math.ceil(this.#files.reduce((sum, { bytes }) => sum + bytes, 0) / 2 ** 20);
    const problems = this.#refused.sort(byName).map(({ name, why: [must, fix] }) => ({ must, got: name, fix }));
    if (this.#entries > MAX_ENTRIES)
      problems.push({ must: `must contain at most ${MAX_ENTRIES} files`, got: 'more', fix: 'keep data in a channel' });
    if (mib > MAX_MIB)
      problems.push({ must: `must contain at most ${MAX_MIB} MiB`, got: `${mib} MiB`, fix: 'keep data in a channel' });
    return { files: this.#files.sort(byName), problems, outside: this.#outside.sort() };
  }
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);

/** Whether this process may read a file. */
export function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
