import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from './driver';
import { EXIT, UsageError } from './exit';
import { json, type Terminal } from './terminal';

/** Starter files and where they come from in the package. */
const STARTERS = [
  { from: 'environments/starter.yaml', to: 'environments/research.yaml' },
  { from: 'runs/starter.yaml', to: 'runs/first-run.yaml' },
];

/** `slipway init [DIR]`: a starter environment file and run file with comments. Never overwrites. */
export function init(directory: string, options: { json?: boolean }, terminal: Terminal): number {
  const files = STARTERS.map(({ from, to }) => ({
    from: path.join(packageRoot(), from),
    to: path.join(directory, to),
  }));
  const taken = files.filter(({ to }) => existsSync(to));
  if (taken.length > 0) {
    throw new UsageError(
      `${directory}: must not hold ${taken.map(({ to }) => to).join(', ')} yet; name another folder, or remove them`,
    );
  }
  for (const { from, to } of files) {
    mkdirSync(path.dirname(to), { recursive: true });
    // The example's own name would clash with nothing in the repository's folder; the file that people get is theirs.
    writeFileSync(
      to,
      readFileSync(from, 'utf8').replace(/^name: starter\b */m, (found) => 'name: research'.padEnd(found.length)),
    );
  }
  const written = files.map(({ to }) => to);
  if (options.json) terminal.out(json({ files: written }));
  else terminal.err(`wrote ${written.join(' and ')}; next: slipway validate ${written[1]}`);
  return EXIT.done;
}
