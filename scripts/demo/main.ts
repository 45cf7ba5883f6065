// `npm run demo`: the whole product on the embedded AWS. Deploys two regions, is refused on quota and cured, prepares data, trains,
// survives a dead instance, reports. Everything it makes lies in .slipway/; `--keep` leaves the sandbox up.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { adminOf, type Sandbox, startSandbox } from '../../lib/sandbox/testing';
import { deployAll, refuseThenCure } from './deploy';
import { Programs } from './programs';
import { elapsedSeconds, screen } from './screen';
import { prepareData, trainThroughCrash } from './train';

const ROOT = path.join(__dirname, '../..');
const FOLDER = path.join(ROOT, '.slipway/demo');
const PYTHON = path.join(ROOT, '.slipway/python/bin/python');

export interface Demo {
  root: string;
  folder: string;
  sandbox: Sandbox;
  admin: ReturnType<typeof adminOf>;
  programs: Programs;
  /** The command line, as a user would call it. */
  slipway: string[];
}

async function prepare(): Promise<Demo> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(path.join(FOLDER, 'home'), { recursive: true });
  screen.step(1, 'start the embedded AWS: MiniStack, SageMaker, Service Quotas');
  const sandbox = await startSandbox({
    stateDir: path.join(FOLDER, 'sandbox'),
    venvDir: path.join(ROOT, '.slipway/venv'),
    pythonBin: PYTHON,
    region: 'us-west-2',
    // A stopped job need not wait two minutes here.
    time: { stopGraceSeconds: 10 },
    progress: screen.detail,
  });
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: path.join(FOLDER, 'home'),
    CI: '1',
    NO_COLOR: '1',
    NODE_NO_WARNINGS: '1',
    SLIPWAY_POLL_SECONDS: '1',
    ...sandbox.env,
  };
  screen.detail(Object.values(sandbox.endpoints).join('  '));
  return {
    root: ROOT,
    folder: FOLDER,
    sandbox,
    admin: adminOf(sandbox),
    programs: new Programs(path.join(FOLDER, 'logs'), env),
    slipway: [process.execPath, path.join(ROOT, 'dist/cli/slipway.mjs')],
  };
}

async function play(demo: Demo): Promise<void> {
  const quotaRefusal = await refuseThenCure(demo);
  const regions = await deployAll(demo);
  await prepareData(demo);
  const trained = await trainThroughCrash(demo);
  const summary = { regions, quotaRefusal, ...trained, seconds: Math.round(elapsedSeconds()) };
  writeFileSync(path.join(FOLDER, 'summary.json'), `${JSON.stringify(summary, null, 2)}\n`);
}

async function main(): Promise<number> {
  if (!existsSync(PYTHON)) throw new Error('demo: the Python environment is missing; run node scripts/python-env.mjs');
  const demo = await prepare();
  const keep = process.argv.includes('--keep');
  let interrupted = false;
  const interrupt = () => {
    interrupted = true;
    demo.programs.endAll();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
  try {
    await play(demo);
    screen.done(`done: ${path.relative(process.cwd(), path.join(FOLDER, 'report.html'))} and summary.json beside it`);
    return 0;
  } catch (error) {
    screen.fail(interrupted ? 'interrupted' : (error as Error).message);
    return interrupted ? 130 : 1;
  } finally {
    demo.programs.endAll();
    if (keep && !interrupted) await untilInterrupted(demo);
    await demo.sandbox.stop();
  }
}

/** With --keep: the sandbox stays until Ctrl-C. */
function untilInterrupted({ sandbox }: Demo): Promise<void> {
  screen.detail('the sandbox stays up until Ctrl-C; talk to it with:');
  screen.detail(
    Object.entries(sandbox.env)
      .map(([name, value]) => `export ${name}=${value}`)
      .join('\n'),
  );
  return new Promise((resolve) => {
    process.once('SIGINT', () => resolve());
    process.once('SIGTERM', () => resolve());
  });
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    screen.fail(error.message);
    process.exitCode = 1;
  },
);
