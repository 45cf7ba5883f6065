// The README's "On a real account", played as it is printed in a fresh clone: the only thing that differs is where the endpoints of the
// shell point. Between two lines stands what the README leaves to people: their edits, and AWS's answer to a request.
import { type SpawnOptions, spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../../lib/sandbox/testing';
import { freshClone, installPackages } from '../../e2e/support/clone';
import { ROOT, type TestSandbox, testSandbox } from '../../e2e/support/sandbox';

const M5 = 'L-CCE2AFA6';
const ENVIRONMENT = 'my-training/environments/research.yaml';

/** The commands of the first fenced block below a heading, without their comments. */
function commandsBelow(heading: string): string[] {
  const text = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
  const block = text.split(`## ${heading}\n`)[1]?.split('```bash\n')[1]?.split('```')[0] ?? '';
  return block.split('\n').flatMap((line) => line.replace(/\s+#.*/, '').trim() || []);
}

let sandbox: TestSandbox;
let clone: string;
beforeAll(async () => {
  sandbox = await testSandbox({ time: { stopGraceSeconds: 5 } });
  clone = path.join(sandbox.folder, 'clone');
  freshClone(clone);
  installPackages(clone);
  // As the first command would build it: test/e2e/clone.test.ts and test/long/smoke.test.ts let a clone build itself.
  cpSync(path.join(ROOT, 'dist'), path.join(clone, 'dist'), { recursive: true });
});
afterAll(() => sandbox?.end());

/** How launch asks about money, and quota about requests. */
const QUESTION = /\(y\/n\)|Launch\?|Request these increases\?/;

/** A line in a shell on a terminal, as a person types it; each question is answered with yes. */
async function typed(line: string): Promise<{ code: number | null; said: string }> {
  const options: SpawnOptions = {
    cwd: clone,
    stdio: 'pipe',
    env: {
      PATH: process.env.PATH,
      HOME: sandbox.folder,
      TERM: 'dumb',
      NODE_NO_WARNINGS: '1',
      npm_config_cache: path.join(sandbox.folder, 'npm'),
      npm_config_update_notifier: 'false',
      SLIPWAY_POLL_SECONDS: '1',
      ...sandbox.env,
    },
  };
  const child = spawn('script', ['-qefc', `stty cols 160 rows 50; ${line}`, '/dev/null'], options);
  let said = '';
  let answered = 0;
  child.stdout?.on('data', (data) => {
    said += data;
    const questions = said.split(QUESTION).length - 1;
    if (questions > answered) child.stdin?.write('y\n');
    answered = questions;
  });
  const code = await new Promise<number | null>((done, fail) => child.on('error', fail).on('close', done));
  return { code, said: said.replace(/\s+/g, ' ') };
}

/** A team of the reader's own size: more of a CPU type than a new account allows. */
function edit(): void {
  const file = path.join(clone, ENVIRONMENT);
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace(
      'instanceType: ml.p5.48xlarge, count: 2',
      'instanceType: ml.m5.xlarge, count: 6',
    ),
  );
}

test('every command goes through as printed, and the first run completes', async () => {
  const [init, bootstrap, quota, deploy, launch, ...others] = commandsBelow('On a real account');
  expect(others).toEqual([]);
  const ends = async (line = '', code = 0) => {
    const outcome = await typed(line);
    expect([line, outcome.code, outcome.code === code ? '' : outcome.said]).toEqual([line, code, '']);
    return outcome.said;
  };
  await ends(init);
  edit();
  await ends(bootstrap);
  expect(await ends(quota)).toContain(M5);
  // What the README says of a quota that is still short.
  expect(await ends(deploy, 1)).toContain(`(${M5}): limit 4, needed 6`);
  await adminOf(sandbox).decideIncreases('us-west-2', 'APPROVED');
  await ends(deploy);
  expect(await ends(launch)).toMatch(/completed/);
});
