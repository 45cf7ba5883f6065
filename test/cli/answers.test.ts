// Documents that the command line prints with --json, held to the schemas that are published for scripts.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ANSWERS, answersSchema } from '../../lib/contracts/answers';
import type { StatusAnswer } from '../../lib/contracts/control';
import { fakeWorld, RUN_FILE } from '../handlers/support/fake-world';
import { runCli } from '../support/run-cli';

const ROOT = path.join(__dirname, '../..');
const RUN = path.join(ROOT, 'runs/llama3-8b-fsdp.yaml');
const REQUEST = path.join(ROOT, 'test/fixtures/import/model-trainer.json');

test('schema/answers.schema.json is what npm run schema writes', () => {
  const text = readFileSync(path.join(ROOT, 'schema/answers.schema.json'), 'utf8');
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(answersSchema())));
});

test.each([
  ['validation', ['validate', RUN, '--json']],
  ['validation', ['validate', RUN, '--set', 'compute.instanceType=ml.p9.48xlarge', '--json']],
  ['plan', ['plan', RUN, '--json']],
  ['refusal', ['plan', RUN, '--set', 'compute.instanceType=ml.p9.48xlarge', '--json']],
  ['imported', ['import', REQUEST, '--json']],
] as const)('%s: %j', async (name, args) => {
  const { stdout } = await runCli(...args);
  expect(ANSWERS[name].parse(JSON.parse(stdout))).toBeTruthy();
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
