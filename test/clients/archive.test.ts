// The archive of a folder is the same, byte for byte, whichever client makes it.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveFolder, COMPRESSED } from '../../lib/shared/archive/archive';
import { codeFiles } from '../../lib/shared/archive/code-files';
import { PYTHON } from '../support/python';

const SOURCE = path.join(__dirname, '../../clients/python/src/slipway');
/** The module by itself: the package would need boto3. */
const SCRIPT = `
import sys, types, warnings
warnings.simplefilter("ignore")
package = types.ModuleType("slipway")
package.__path__ = [${JSON.stringify(SOURCE)}]
sys.modules["slipway"] = package
from slipway._archive import archive_folder
from slipway.errors import UsageError
for line in sys.stdin:
    try:
        print(archive_folder(line.strip()).sha256, flush=True)
    except UsageError as error:
        print(str(error).replace(chr(10), "|"), flush=True)
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-archive-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What the Python client makes of each folder: the digest, or why it cannot be packed. */
const inPython = (...folders: string[]) =>
  execFileSync(PYTHON, ['-c', SCRIPT], { encoding: 'utf8', input: folders.map((name) => `${name}\n`).join('') })
    .trim()
    .split('\n');
const pythonDigest = () => inPython(folder)[0];
const inTypeScript = (at: string) =>
  archiveFolder(at).then(
    ({ sha256 }) => sha256,
    (error: Error) => error.message.replaceAll('\n', '|'),
  );

function put(name: string, content: string | Buffer, mode = 0o644): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

test.each<[what: string, fill: () => void]>([
  ['an empty folder', () => {}],
  ['one empty file', () => put('train.py', '')],
  [
    'folders, an executable, and what is left out',
    () => {
      put('train.py', 'print(1)\n');
      put('bin/run.sh', '#!/bin/sh\n', 0o755);
      put('.git/config', 'x');
      put('pkg/__pycache__/a.cpython-311.pyc', 'x');
      put('pkg/old.pyc', 'x');
      put('.hidden', 'kept');
    },
  ],
  ['content of exactly one block, of one more byte, and of several', () => put('big', Buffer.alloc(200_000, 'ab'))],
  [
    'names beyond ASCII',
    () => {
      for (const name of ['ä.py', '\u{1F600}.py', '\uFF5E.py', 'z.py']) put(name, name);
    },
  ],
  [
    'names that do not fit a header',
    () => {
      put(`${'d'.repeat(60)}/${'e'.repeat(60)}/f.py`, 'prefix');
      put(`${'g'.repeat(120)}.py`, 'record');
      put(`${'h'.repeat(90)}/${'i'.repeat(90)}/${'j'.repeat(90)}/k.py`, 'record too');
    },
  ],
  [
    'a link to a file',
    () => {
      put('real.py', 'x');
      symlinkSync('real.py', path.join(folder, 'link.py'));
    },
  ],
])('%s', async (_, fill) => {
  fill();
  const archive = await archiveFolder(folder);
  expect(pythonDigest()).toBe(archive.sha256);
  expect(gunzipSync(archive.bytes).length % 512).toBe(0);
});

test.each([0, 1, 65_534, 65_535, 65_536, 131_070])('a stored gzip of %i bytes is a gzip file', async (size) => {
  const { storedGzip } = await import('../../lib/shared/archive/archive.js');
  const content = Buffer.alloc(size, 'x');
  expect(gunzipSync(storedGzip(content)).equals(content)).toBe(true);
});

test('registered runs keep the compressed archive, and with it the digest that they are known by', async () => {
  put('train.py', 'print(1)\n'.repeat(100));
  const [stored, compressed] = [await archiveFolder(folder), await archiveFolder(folder, COMPRESSED)];
  expect(compressed.bytes.length).toBeLessThan(stored.bytes.length);
  expect(gunzipSync(compressed.bytes).equals(gunzipSync(stored.bytes))).toBe(true);
});

/** A folder of code as a list of what is made in it, in this order; what cannot be made is left out. */
const parts = fc.constantFrom(
  'a',
  'b',
  'sub',
  'train.py',
  'x.pyc',
  '.git',
  'venv',
  'pyvenv.cfg',
  'é',
  '\u{1F600}',
  'l'.repeat(20),
  'up',
);
const names = fc.array(parts, { minLength: 1, maxLength: 3 }).map((all) => all.join('/'));
const targets = fc.oneof(
  names,
  names.map((name) => `../${name}`),
  fc.constantFrom('.', '..', '/etc/hostname', '/etc', '../..', 'up', '/dev/null'),
);
const entries = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ name: names, content: fc.string({ maxLength: 20 }), mode: fc.constantFrom(0o644, 0o755) }),
  },
  { weight: 2, arbitrary: fc.record({ name: names, target: targets }) },
);

function make(at: string, entry: { name: string; content?: string; mode?: number; target?: string }): void {
  const file = path.join(at, entry.name);
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    if (entry.target === undefined) writeFileSync(file, entry.content ?? '', { mode: entry.mode ?? 0o644, flag: 'wx' });
    else symlinkSync(entry.target, file);
  } catch {
    // Another entry is in the way.
  }
}

test('any folder has one archive, or the same reasons for none, whichever client packs it', async () => {
  const drawn = fc.sample(fc.record({ isRepository: fc.boolean(), all: fc.array(entries, { maxLength: 12 }) }), {
    numRuns: 150,
    seed: 43,
  });
  const folders = drawn.map(({ isRepository, all }, i) => {
    const repository = path.join(folder, String(i));
    const code = path.join(repository, 'code');
    mkdirSync(code, { recursive: true });
    if (isRepository) mkdirSync(path.join(repository, '.git'));
    writeFileSync(path.join(repository, 'a'), 'beside the code');
    for (const entry of all) make(code, entry);
    return code;
  });
  const ours = await Promise.all(folders.map(inTypeScript));
  expect(inPython(...folders)).toEqual(ours);
  // The sample has both kinds.
  expect(
    new Set(
      ours.map((one) =>
        one
          .replace(/, got [^;]*/g, '')
          .split('|')[0]
          ?.slice(0, 40),
      ),
    ).size,
  ).toBeGreaterThan(20);
});

test.each<[string, () => void, string]>([
  [
    'a link that leads nowhere',
    () => symlinkSync('nowhere', path.join(folder, 'broken')),
    'must contain no link that leads nowhere, got broken; remove it',
  ],
  [
    'a link to itself',
    () => symlinkSync('self', path.join(folder, 'self')),
    'must contain no link to itself or to a folder around it, got self; remove it',
  ],
  [
    'a link to the folder itself',
    () => symlinkSync('.', path.join(folder, 'mylink')),
    'must contain no link to itself or to a folder around it, got mylink; remove it',
  ],
  [
    'a name in Latin-1',
    () => writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('caf\u00e9.py', 'latin1')]), ''),
    'must contain only names in UTF-8, got caf\uFFFD.py; rename it',
  ],
  [
    '600 MB in one file',
    () => {
      put('model.bin', '');
      truncateSync(path.join(folder, 'model.bin'), 600_000_000);
    },
    'must contain at most 512 MiB, got 573 MiB; keep data in a channel',
  ],
])('fails: %s', async (_, fill, message) => {
  put('train.py', '');
  fill();
  expect([await inTypeScript(folder), pythonDigest()]).toEqual([`code.source: ${message}`, `code.source: ${message}`]);
});

test('a link to a folder of the repository stands for its content, and a Python environment is left out', async () => {
  mkdirSync(path.join(folder, '.git'));
  put('common/lib.py', 'x = 1');
  put('code/train.py', 'import common.lib');
  put('code/venv/pyvenv.cfg', '');
  put('code/venv/lib/torch.py', '');
  symlinkSync('../common', path.join(folder, 'code/common'));
  const { files, problems } = codeFiles(path.join(folder, 'code'));
  expect([files.map(({ name }) => name), problems]).toEqual([['common/lib.py', 'train.py'], []]);
});

test('a link that leaves the repository is left out, and one with the name of what is left out is not followed', async () => {
  put('train.py', '');
  symlinkSync('/etc/hostname', path.join(folder, 'host.txt'));
  symlinkSync('/etc', path.join(folder, 'data'));
  symlinkSync('/nowhere', path.join(folder, '.venv'));
  const { files, problems, outside } = codeFiles(folder);
  expect([files.map(({ name }) => name), problems, outside]).toEqual([['train.py'], [], ['data', 'host.txt']]);
  expect(await inTypeScript(folder)).toBe(pythonDigest());
});
