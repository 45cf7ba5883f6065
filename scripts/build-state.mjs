// Which parts of a build need not be made again: `.slipway/build.json` has, for each, a digest of what it was made of and of what it wrote.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const STATE = path.join('.slipway', 'build.json');

/** The files at some paths and below them; what Python compiles beside its sources is none of them. */
const filesBelow = (place) => {
  if (!existsSync(place)) return [];
  if (statSync(place).isFile()) return [place];
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('__pycache__'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort();
};

/** Digest of the names and contents of files. */
export function inputsOf(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const file of paths.flatMap(filesBelow)) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

/** Digest of the names, sizes and times of files: enough to see that somebody else wrote or removed one. */
function outputsOf(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesBelow)) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${file}\0${size}\0${mtimeMs}\0`);
  }
  return hash.digest('hex');
}

const read = () => (existsSync(STATE) ? JSON.parse(readFileSync(STATE, 'utf8')) : {});

/** Whether a part was made of these inputs, and what it wrote at these paths is still there. */
export function isBuilt(part, inputs, outputs) {
  const known = read()[part];
  return known !== undefined && known.inputs === inputs && known.outputs === outputsOf(outputs);
}

/** Records that a part was made of these inputs. */
export function recordBuild(part, inputs, outputs) {
  mkdirSync(path.dirname(STATE), { recursive: true });
  writeFileSync(STATE, JSON.stringify({ ...read(), [part]: { inputs, outputs: outputsOf(outputs) } }));
}
