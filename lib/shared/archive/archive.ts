import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { crc32, gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { CODE_IN_IMAGE } from '../../core/config/code-source';
import { issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { codeFiles } from './code-files';

/** Magic, deflate, no flags, no time, unknown system: https://www.rfc-editor.org/rfc/rfc1952, 2.3. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
/** Maximum size of a stored block: https://www.rfc-editor.org/rfc/rfc1951, 3.2.4. */
const BLOCK = 65_535;

/** A gzip file whose content is stored uncompressed, so that the bytes are the same everywhere. */
export function storedGzip(content: Buffer): Buffer {
  const parts: Buffer[] = [HEADER];
  for (let at = 0; at === 0 || at < content.length; at += BLOCK) {
    const block = content.subarray(at, at + BLOCK);
    const head = Buffer.alloc(5);
    head[0] = at + BLOCK >= content.length ? 1 : 0;
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(block.length ^ 0xffff, 3);
    parts.push(head, block);
  }
  const end = Buffer.alloc(8);
  end.writeUInt32LE(crc32(content) >>> 0, 0);
  end.writeUInt32LE(content.length >>> 0, 4);
  return Buffer.concat([...parts, end]);
}

/** A gzipped tar in memory, with its digest, by which it is named in S3. */
export interface Archive {
  bytes: Buffer;
  sha256: string;
}

/** Wraps the tar of an archive in gzip. */
type Wrapping = (tar: Buffer) => Buffer;

/**
 * Without compression, so that the digest is the same on every machine and in the Python client. zlib output differs between releases, and
 * code folders are small.
 */
const STORED: Wrapping = storedGzip;

/** Compression used for registered runs since the first release: another digest would submit each of them again. */
export const COMPRESSED: Wrapping = (tar) => gzipSync(tar, { level: 9 });

/**
 * A .tar.gz of `folder` whose bytes depend only on names, contents and the executable bit: the same code gives the same digest.
 * @throws Error with a line for each reason why the folder cannot be packed
 */
export async function archiveFolder(folder: string, wrap = STORED): Promise<Archive> {
  const { files, problems } = codeFiles(folder);
  if (problems.length > 0)
    throw new Error(problems.map((text) => issue('code/folder', 'error', 'code.source', text).message).join('\n'));
  const tar = pack();
  const packed = buffer(tar);
  for (const { name, isExecutable } of files) {
    const mode = isExecutable ? 0o755 : 0o644;
    tar.entry({ name, mode, mtime: new Date(0), uid: 0, gid: 0 }, readFileSync(path.join(folder, name)));
  }
  tar.finalize();
  const bytes = wrap(await packed);
  return { bytes, sha256: sha256(bytes) };
}

/** The archive of a run's local code folder; undefined for built-in code, and for code in S3 or in the image. */
export async function codeArchive(run: RunSpec, runFile: string, wrap = STORED): Promise<Archive | undefined> {
  const { builtin, source } = run.code;
  if (builtin || source === CODE_IN_IMAGE || source.startsWith('s3://')) return undefined;
  return archiveFolder(path.resolve(path.dirname(runFile), source), wrap);
}

/** SHA-256 of the bytes as 64 lower-case hexadecimal digits. */
export const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
