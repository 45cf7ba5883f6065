// Documents that the command line prints with --json, held to the schemas that are published for scripts.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { ANSWERS, answersSchema } from '../../lib/core/contracts/answers';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import { fakeWorld, RUN_FILE } from '../control/support/fake-world';
import { runCli } from '../support/run-cli';

const ROOT = path.join(__dirname, '../..');
const RUN = path.join(ROOT, 'runs/builtin/llama3-8b-fsdp.yaml');
const TRAINIUM = path.join(ROOT, 'runs/trainers/trn2-ddp.yaml');
const TRAINIUM_MODEL = ['--set', 'model.preset=llama3-8b', '--set', 'training.sequenceLength=4096'];
const REQUEST = path.join(ROOT, 'test/fixtures/import/model-trainer.json');

test('schema/answers.schema.json is what npm run schema writes', () => {
  const text = readFileSync(path.join(ROOT, 'schema/answers.schema.json'), 'utf8');
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(answersSchema())));
});

test.each([
  ['validation', ['validate', RUN, '--json']],
  ['validation', ['validate', RUN, '--set', 'compute.instanceType=ml.p9.48xlarge', '--json']],
  ['plan', ['plan', RUN, '--json']],
  ['neuronPlan', ['plan', TRAINIUM, ...TRAINIUM_MODEL, '--json']],
  ['refusal', ['plan', RUN, '--set', 'compute.instanceType=ml.p9.48xlarge', '--json']],
  ['imported', ['import', REQUEST, '--json']],
] as const)('%s: %j', async (name, args) => {
  const { stdout } = await runCli(...args);
  expect(ANSWERS[name].parse(JSON.parse(stdout))).toBeTruthy();
});

test('a plan on Trainium says memory, no speed, and refuses what needs one', async () => {
  const words = ['plan', TRAINIUM, ...TRAINIUM_MODEL];
  const { stdout } = await runCli(...words);
  const lines = stripVTControlCharacters(stdout).split('\n');
  expect(lines[0]).toBe('trn2-ddp: 8.0 B parameters on 128 NeuronCores of ml.trn2.48xlarge');
  expect(lines.filter((line) => /^(speed|cost)/.test(line))).toEqual(['speed   not known', 'cost    not known']);
  expect(stdout).toMatch(/tensor 4 x FSDP 32: \d+\.\d GiB/);
  for (const option of ['--search', '--by=2027-01-01', '--html=/tmp/none.html']) {
    const refused = await runCli(...words, option);
    expect([option, refused.code, refused.stderr]).toEqual([option, 1, expect.stringContaining('[plan/unknown]')]);
  }
});

test('the answers of control about a run are a status and a list, with nothing that the schemas do not name', async () => {
  const world = fakeWorld();
  await world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId: 'r1' });
  await world.ask({ action: 'start', runId: 'pretrain-261121120000', confirm: true });
  const { ok: _, ...status } = (await world.ask({
    action: 'status',
    runId: 'pretrain-261121120000',
    timeline: true,
  })) as { ok: true } & StatusAnswer;
  // Compiles only while the published document and the type of the code say the same.
  const parsed: StatusAnswer = ANSWERS.status.parse(status);
  expect(parsed).toEqual(status);
  const { runs } = (await world.ask({ action: 'list' })) as { runs: StatusAnswer[] };
  expect(ANSWERS.runList.parse({ runs })).toEqual({ runs });
});
