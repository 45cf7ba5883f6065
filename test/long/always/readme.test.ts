// The README's "On a real account", played as it is printed in a fresh clone, with the files as `slipway init` writes them: the only thing that
// differs is where the endpoints of the shell point. Between two lines stands AWS's answer to a request.
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../../lib/sandbox/testing';
import { freshClone, installPackages } from '../../e2e/support/clone';
import { ROOT, type TestSandbox, testSandbox } from '../../e2e/support/sandbox';

/** Code of the limit of ml.p5.48xlarge for training jobs, two of which the environment of a new project needs. */
const P5 = 'L-82E1C851';

/** The commands of the fenced blocks of a page, block by block, without their comments. */
const commandsOf = (text: string): string[][] =>
  text
    .split('```bash\n')
    .slice(1)
    .map((rest) => rest.split('```')[0]?.split('\n') ?? [])
    .map((lines) => lines.flatMap((line) => line.replace(/\s+#.*/, '').trim() || []));

/** Those of the first block below a text. */
const commandsBelow = (page: string, words: string): string[] =>
  commandsOf(readFileSync(page, 'utf8').split(words)[1] ?? '')[0] ?? [];

let folder: string;
const played = new Set<string>();
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

/** A setting of this machine's npm, whose home the shell does not have. */
const npmSetting = (name: string) => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8' }).trim();

/** How launch asks about money, and quota about requests. */
const QUESTION = /\(y\/n\)|Launch\?|Request these increases\?/;

/** A line in a shell on a terminal, as a person types it in a folder; each question is answered with yes. */
async function typed(line: string, cwd: string): Promise<{ code: number | null; said: string }> {
  const options: SpawnOptions = {
    cwd,
    stdio: 'pipe',
    env: {
      PATH: process.env.PATH,
      HOME: sandbox.folder,
      TERM: 'dumb',
      NODE_NO_WARNINGS: '1',
      npm_config_cache: npmSetting('cache'),
      npm_config_userconfig: npmSetting('userconfig'),
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

/** Types a line, which must end with an exit code. */
async function ends(line = '', code = 0): Promise<string> {
  played.add(line);
  const outcome = await typed(line, folder);
  expect([line, outcome.code, outcome.code === code ? '' : outcome.said]).toEqual([line, code, '']);
  return outcome.said;
}

test('every command goes through as printed, and the first run completes', async () => {
  const [init = '', install, bootstrap, quota, deploy, launch, ...others] = commandsBelow(
    path.join(ROOT, 'README.md'),
    '## On a real account\n',
  );
  expect(others).toEqual([]);
  folder = clone;
  await ends(init);
  // Each line is typed into a shell of its own here.
  folder = path.join(clone, init.split(' && cd ')[1] ?? '');
  await ends(install);
  await ends(bootstrap);
  expect(await ends(quota)).toContain(P5);
  // What the README says of a quota that is still short.
  expect(await ends(deploy, 1)).toContain(`(${P5}): limit 0, needed 2`);
  await adminOf(sandbox).decideIncreases('us-west-2', 'APPROVED');
  await ends(deploy);
  expect(await ends(launch)).toMatch(/completed/);

  // What the project's own README goes on with. No machine of ours trains the last one, so that only its request is made.
  const [smoke, text, tokenise, train] = commandsBelow(path.join(folder, 'README.md'), 'The first runs');
  expect(smoke).toBe(launch);
  expect(await ends(text)).toMatch(/completed/);
  expect(await ends(tokenise)).toMatch(/completed/);
  const request = await ends(train?.replace('--wait', '--dry-run'));
  expect(request).toContain('"InstanceType": "ml.p5.48xlarge"');
});

test('the guide to the first deployment goes through as printed', async () => {
  const [init = [], ...blocks] = commandsOf(readFileSync(path.join(ROOT, 'docs/guides/first-deployment.md'), 'utf8'));
  // Its first block is README's; no machine of ours has the GPUs of the last one.
  expect(init[0]).toBe('npx slipway init ../my-training');
  const lines = blocks.flat().filter((line) => !played.has(line) && !line.includes('first-run.yaml'));
  expect(lines).toContain('npx slipway preflight environments/training.yaml --region us-west-2');
  // `verify` asks whether AWS is as Slipway assumes, and the embedded AWS encrypts no bucket.
  for (const line of lines) await ends(line, line.includes('slipway verify') ? 1 : 0);
});
