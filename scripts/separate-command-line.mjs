// Moves the chunks that only the command line loads from dist/handlers to dist/cli, so that the functions upload no code that they never load.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const HANDLERS = 'dist/handlers';
const COMMAND_LINE = 'dist/cli';

/** Files that the functions load, directly or not. */
function loadedByHandlers(outputs) {
  const found = new Set();
  const waiting = Object.keys(outputs).filter((file) => outputs[file].entryPoint?.startsWith('lib/control/'));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    waiting.push(...outputs[file].imports.filter(({ external }) => !external).map((i) => i.path));
  }
  return found;
}

/** Moves the chunks, given the outputs of esbuild's metafile, and corrects the imports of all files of the command line. */
export function separateCommandLine(outputs) {
  const shared = loadedByHandlers(outputs);
  const relative = (from, to) => {
    const request = path.posix.relative(path.posix.dirname(from), to);
    return request.startsWith('.') ? request : `./${request}`;
  };
  const placeOf = (file) => (shared.has(file) ? file : file.replace(HANDLERS, COMMAND_LINE));
  for (const file of Object.keys(outputs).filter((each) => !shared.has(each))) {
    const requests = new Map(
      outputs[file].imports
        .filter(({ external }) => !external)
        .map(({ path: to }) => [relative(file, to), relative(placeOf(file), placeOf(to))]),
    );
    const text = readFileSync(file, 'utf8');
    writeFileSync(
      file,
      text.replace(/"(\.[^"\n]*\.mjs)"/g, (quoted, request) =>
        requests.has(request) ? JSON.stringify(requests.get(request)) : quoted,
      ),
    );
    renameSync(file, placeOf(file));
  }
}
