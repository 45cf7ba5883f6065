// The archive of a folder is the same, byte for byte, whichever client makes it.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveFolder, COMPRESSED } from '../../lib/archive/archive';
import { PYTHON } from '../support/python';

const SOURCE = path.join(__dirname, '../../clients/python/src/slipway/_archive.py');
/** The module by itself: the package would need boto3. */
const SCRIPT = `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_archive", ${JSON.stringify(SOURCE)})
module = importlib.util.module_from_spec(spec)
sys.modules["_archive"] = module
spec.loader.exec_module(module)
print(module.archive_folder(sys.argv[1]).sha256)
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-archive-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const pythonDigest = () => execFileSync(PYTHON, ['-c', SCRIPT, folder], { encoding: 'utf8' }).trim();

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
  const { storedGzip } = await import('../../lib/archive/stored-gzip.js');
  const content = Buffer.alloc(size, 'x');
  expect(gunzipSync(storedGzip(content)).equals(content)).toBe(true);
});

test('registered runs keep the compressed archive, and with it the digest that they are known by', async () => {
  put('train.py', 'print(1)\n'.repeat(100));
  const [stored, compressed] = [await archiveFolder(folder), await archiveFolder(folder, COMPRESSED)];
  expect(compressed.bytes.length).toBeLessThan(stored.bytes.length);
  expect(gunzipSync(compressed.bytes).equals(gunzipSync(stored.bytes))).toBe(true);
});
