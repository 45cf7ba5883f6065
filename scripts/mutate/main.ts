// `npm run mutate:control [-- COUNT SEED HISTORIES WORKERS]`: whether scenarios and histories alone notice when one line of the control plane is wrong.
// Mutants are made in memory while esbuild bundles the simulation; no file of the repository changes. They are drawn by the seed from the lines that
// the unchanged simulation runs, less those of `equivalent.ts`, each with its reason.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { build, transformSync } from 'esbuild';
import { requireEquivalents } from './equivalent';
import { drawMutants, type Mutant } from './mutants';
import { reachedLines } from './reached';

const ROOT = path.resolve(__dirname, '..', '..');
const FOLDERS = ['lib/lifecycle', 'lib/queue', 'lib/handlers/control', 'lib/handlers/reconcile', 'lib/handlers/shared'];
/** Wires of the functions on AWS, which the simulation replaces. */
const REPLACED = /\/(index|clients|deadline|presign)\.ts$/;
/** A mutant that never ends is found by it. */
const MOST_MS = 300_000;

const [count = 30, seed = 1, histories = 16, workers = availableParallelism()] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-mutants-'));

function sources(): Map<string, string> {
  const files = FOLDERS.flatMap((name) =>
    readdirSync(path.join(ROOT, name), { recursive: true, encoding: 'utf8' }).map((file) => `${name}/${file}`),
  );
  const wanted = files.filter((file) => file.endsWith('.ts') && !REPLACED.test(file));
  return new Map(wanted.map((file) => [file, readFileSync(path.join(ROOT, file), 'utf8')]));
}

const mutate = (text: string, { line, after }: Mutant): string =>
  text
    .split('\n')
    .map((old, i) => (i === line - 1 ? after : old))
    .join('\n');

/** One that is no program says nothing of what looks for it. */
function isProgram(mutant: Mutant, text: string): boolean {
  try {
    transformSync(mutate(text, mutant), { loader: 'ts' });
    return true;
  } catch {
    return false;
  }
}

async function bundle(mutant: Mutant | undefined, outfile: string): Promise<void> {
  await build({
    entryPoints: [path.join(ROOT, 'scripts/mutate/play.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    logLevel: 'silent',
    sourcemap: mutant ? false : 'external',
    plugins: [
      {
        name: 'mutant',
        setup(of) {
          if (!mutant) return;
          const file = path.join(ROOT, mutant.file);
          of.onLoad({ filter: /\.ts$/ }, ({ path: loaded }) =>
            loaded === file ? { contents: mutate(readFileSync(file, 'utf8'), mutant), loader: 'ts' } : undefined,
          );
        },
      },
    ],
  });
}

/** What was found; undefined when every invariant holds. */
async function look(outfile: string, coverage?: string): Promise<string | undefined> {
  const drawn = path.join(ROOT, 'scripts/mutate/histories.yaml');
  const args = [outfile, path.join(ROOT, 'test/scenarios'), drawn, String(histories)];
  const child = spawn(process.execPath, ['--max-semi-space-size=64', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, ...(coverage && { NODE_V8_COVERAGE: coverage }) },
  });
  let said = '';
  child.stdout.on('data', (data) => {
    said += data;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), MOST_MS);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  return code === 0 ? undefined : said.trim() || 'it did not end';
}

async function judge(mutant: Mutant, place: number): Promise<string | undefined> {
  const outfile = path.join(folder, `${place}.js`);
  try {
    await bundle(mutant, outfile);
    return await look(outfile);
  } catch {
    return 'it does not compile';
  } finally {
    rmSync(outfile, { force: true });
  }
}

async function main(): Promise<void> {
  const plain = path.join(folder, 'plain.js');
  await bundle(undefined, plain);
  const coverage = path.join(folder, 'coverage');
  const fault = await look(plain, coverage);
  if (fault) throw new Error(`without a mutant an invariant does not hold: ${fault}`);
  const reached = reachedLines(ROOT, plain, coverage);
  const files = sources();
  const isEquivalent = requireEquivalents(files);
  const isWanted = (mutant: Mutant) =>
    reached.has(`${mutant.file}:${mutant.line}`) &&
    !isEquivalent(mutant) &&
    isProgram(mutant, files.get(mutant.file) ?? '');
  const { drawn: mutants, wanted, all } = drawMutants(files, count, seed, isWanted);
  process.stdout.write(
    `${wanted} of ${all} mutants change a line that the simulation runs and that decides something\n`,
  );
  const found: (string | undefined)[] = [];
  let next = 0;
  const work = async () => {
    for (let place = next++; place < mutants.length; place = next++) {
      const mutant = mutants[place] as Mutant;
      found[place] = await judge(mutant, place);
      process.stdout.write(
        `${found[place] ? 'found   ' : 'SURVIVED'} ${mutant.file}:${mutant.line} ${mutant.kind}\n  - ${mutant.before.trim()}\n  + ${mutant.after.trim()}\n  ${found[place] ?? ''}\n`,
      );
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  const number = found.filter(Boolean).length;
  process.stdout.write(`${number} of ${mutants.length} mutants found (seed ${seed}, ${histories} histories)\n`);
}

main()
  .catch((error: Error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  })
  .finally(() => rmSync(folder, { recursive: true, force: true }));
