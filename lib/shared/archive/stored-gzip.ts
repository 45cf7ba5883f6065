import { crc32 } from 'node:zlib';

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
