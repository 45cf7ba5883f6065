// `npm run mutate -- [MODULE...] [--count 100] [--seed 1] [--json]`: whether the tests of a module notice that one expression of it is wrong.
// Stryker makes the mutants that are drawn by the seed and runs the tests of the module's own folder against each, or those of `TESTS`.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { textTable } from '../../../lib/spec/formats/text-table';
import { drawPlaces, EXCLUDED_MUTATIONS, possibleMutants } from './draw';
import { strykerFolder } from './install';

const ROOT = path.resolve(__dirname, '..', '..', '..');
const MODULES = 'spec rules quota queue lifecycle job distribution planner admission handlers'.split(' ');
/** Folders of the tests of a module, where they are more than its own: the rules of strategies are held beside the others, and requests beside the rules on what they ask for. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  distribution: ['distribution', 'rules'],
  job: ['job', 'rules'],
};
/** Share of mutants that the tests of a module should kill (docs/mutation.md). */
const WANTED = 0.85;

interface Mutant {
  status: string;
  mutatorName: string;
  replacement?: string;
  location: { start: { line: number; column: number }; end: { line: number; column: number } };
}

/** What Stryker's report of a module says. */
interface Score {
  module: string;
  possible: number;
  made: number;
  killed: number;
  alive: string[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
});

const filesOf = (module: string): string[] =>
  execFileSync('git', ['ls-files', `lib/${module}/*.ts`], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

function configOf(stryker: string, folder: string, mutate: readonly string[]) {
  return {
    plugins: [path.join(stryker, 'node_modules', '@stryker-mutator', 'vitest-runner', 'dist', 'src', 'index.js')],
    // Stryker reads a tsconfig by the API of TypeScript 5, which TypeScript 7 does not have; vitest needs none.
    tsconfigFile: 'none',
    testRunner: 'vitest',
    vitest: { configFile: 'scripts/mutate/stryker/vitest.config.mts', related: false },
    coverageAnalysis: 'perTest',
    mutate,
    mutator: { excludedMutations: EXCLUDED_MUTATIONS },
    disableTypeChecks: false,
    ignorePatterns: ['.slipway', 'dist', 'docs/.vitepress/dist', 'cdk.out'],
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: path.join(folder, 'report.json') },
    tempDirName: path.join('.slipway', 'stryker-run'),
    concurrency: 2,
    // A run that other work slows down is not one that never ends, which counts as noticed.
    timeoutMS: 60_000,
    allowEmpty: true,
  };
}

async function scoreOf(stryker: string, module: string): Promise<Score> {
  const mutants = await possibleMutants(stryker, ROOT, filesOf(module));
  const places = drawPlaces(mutants, Number(values.count), Number(values.seed));
  const folder = path.join(ROOT, '.slipway', 'mutation', module);
  mkdirSync(folder, { recursive: true });
  const config = path.join(folder, 'stryker.json');
  writeFileSync(config, JSON.stringify(configOf(stryker, folder, places)));
  const command = path.join(stryker, 'node_modules', '@stryker-mutator', 'core', 'bin', 'stryker.js');
  const { status } = spawnSync(process.execPath, [command, 'run', config], {
    cwd: ROOT,
    env: { ...process.env, SLIPWAY_MUTATION_TESTS: (TESTS[module] ?? [module]).join(), SLIPWAY_HISTORIES: '1000' },
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error(`${module}: Stryker must end with 0, got ${status}; its words are above`);
  return { module, possible: mutants.length, ...readReport(path.join(folder, 'report.json')) };
}

const KILLED = ['Killed', 'Timeout'];
const ALIVE = ['Survived', 'NoCoverage'];

function readReport(file: string): Pick<Score, 'made' | 'killed' | 'alive'> {
  const { files } = JSON.parse(readFileSync(file, 'utf8')) as { files: Record<string, { mutants: Mutant[] }> };
  const all = Object.entries(files).flatMap(([name, { mutants }]) => mutants.map((mutant) => ({ name, ...mutant })));
  const judged = all.filter(({ status }) => KILLED.includes(status) || ALIVE.includes(status));
  const alive = judged.filter(({ status }) => ALIVE.includes(status));
  return {
    made: judged.length,
    killed: judged.length - alive.length,
    alive: alive.map(
      ({ name, location, mutatorName, replacement, status }) =>
        `${name}:${location.start.line} ${mutatorName} -> ${(replacement ?? '').replace(/\s+/g, ' ').slice(0, 80)}${status === 'NoCoverage' ? ' (no test runs it)' : ''}`,
    ),
  };
}

async function main(): Promise<void> {
  const unknown = positionals.filter((name) => !MODULES.includes(name));
  if (unknown.length > 0) throw new Error(`MODULE: must be one of ${MODULES.join(', ')}, got ${unknown.join(', ')}`);
  const stryker = strykerFolder(ROOT);
  const scores: Score[] = [];
  for (const module of positionals.length > 0 ? positionals : MODULES) scores.push(await scoreOf(stryker, module));
  if (values.json) process.stdout.write(`${JSON.stringify({ seed: Number(values.seed), scores }, null, 2)}\n`);
  else {
    const rows = scores.map(({ module, possible, made, killed }) => {
      const share = made === 0 ? 0 : killed / made;
      return [
        module,
        String(possible),
        String(made),
        String(killed),
        `${Math.round(100 * share)} %${share < WANTED ? ' *' : ''}`,
      ];
    });
    process.stdout.write(`${textTable(['module', 'mutants', 'made', 'killed', 'share'], rows)}\n`);
    for (const { alive } of scores) for (const line of alive) process.stdout.write(`${line}\n`);
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
