// No call over the network of our own goes without a time limit. Clients of AWS's SDKs have settings of their own (lib/handlers/shared/clients.ts; boto3: 60 s).
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/repository-files';

interface Kind {
  /** Files that it looks at. */
  files: RegExp;
  /** Begins a call; ends with its opening bracket, or is a command of a shell. */
  call: RegExp;
  /** What must stand in the call. */
  limit: RegExp;
}
const KINDS: readonly Kind[] = [
  { files: /\.(ts|mjs)$/, call: /(?<![\w.])fetch\(/g, limit: /\bsignal\b/ },
  {
    files: /\.(ts|mjs)$/,
    call: /\b(?:net\.connect|createConnection|https?\.(?:get|request))\(/g,
    limit: /\btimeout\b/,
  },
  {
    files: /\.py$/,
    call: /\b(?:urlopen|HTTPS?Connection|create_connection|urlretrieve|requests\.\w+)\(/g,
    limit: /\btimeout=/,
  },
  {
    files: /(\.sh|Dockerfile[^/]*)$/,
    call: /^[^#\n]*\b(?:curl|wget) +(?=[-"$h])/gm,
    limit: /--max-time|--speed-time|--timeout=/,
  },
];
const FOLDERS = ['lib', 'clients', 'containers', 'scripts', 'bin'];

/** The text of a call from its opening bracket to the closing one; of a command, to the end of its last continued line. */
function textOfCall(source: string, from: number, opening: string): string {
  if (!opening.endsWith('(')) return /^(?:.*\\\n)*.*/.exec(source.slice(from))?.[0] ?? '';
  let depth = 0;
  for (let at = from + opening.length - 1; at < source.length; at++) {
    if (source[at] === '(') depth += 1;
    if (source[at] === ')') depth -= 1;
    if (depth === 0) return source.slice(from, at + 1);
  }
  return source.slice(from);
}

/** Calls of a file that have no limit, with their lines. */
function unlimited(file: string, source: string): string[] {
  return KINDS.filter(({ files }) => files.test(file)).flatMap(({ call, limit }) =>
    [...source.matchAll(call)]
      .filter(({ index, 0: opening }) => !limit.test(textOfCall(source, index, opening)))
      .map(({ index, 0: opening }) => `${file}:${source.slice(0, index).split('\n').length}: ${opening.trim()}`),
  );
}

test('no call over the network goes without a time limit', () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name)),
  ).filter((file) => KINDS.some((kind) => kind.files.test(file)) && !file.includes('node_modules'));
  expect(files.length).toBeGreaterThan(500);
  expect(files.flatMap((file) => unlimited(file, readFileSync(path.join(ROOT, file), 'utf8')))).toEqual([]);
});

test.each([
  ['a.ts', 'await fetch(url, { body: f(1) }); const signal = 1;'],
  ['a.py', 'urllib.request.urlopen(Request(url, data=b))\ntimeout=1'],
  ['a.py', 'http.client.HTTPSConnection(host, context=c)'],
  ['a.sh', '  curl --fail \\\n  "$URL"\necho --max-time'],
])('fails: a call of %s without a limit is found, whatever stands beside it: %s', (file, source) => {
  expect(unlimited(file, source)).toHaveLength(1);
});

test.each([
  ['a.ts', 'await fetch(url, { method: f(g(1)), signal })'],
  ['a.ts', 'await client.fetch(url); prefetch(url)'],
  ['a.py', 'urlopen(Request(f(url)), timeout=5)'],
  ['a.sh', 'curl --fail \\\n  --max-time 9 "$URL"'],
])('a call of %s with a limit is none: %s', (file, source) => {
  expect(unlimited(file, source)).toEqual([]);
});
