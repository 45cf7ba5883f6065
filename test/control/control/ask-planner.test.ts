import { beforeEach, expect, test } from 'vitest';
import { planDocument } from '../../../lib/core/admission';
import { loadRun } from '../../../lib/core/config/load';
import { ANSWERS } from '../../../lib/core/contracts/answers';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

const MODEL = `name: planned
model: { preset: mistral-7b }
training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 64, steps: 1000, precision: bf16 }
code: { source: builtin }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 8 }
distribution: { library: fsdp }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`;

test('validate judges a file and names its code, and writes nothing', async () => {
  const answer = await world.ask({ action: 'validate', runFile: RUN_FILE });
  expect(answer).toMatchObject({ ok: true, isValid: true, codeSource: 'builtin' });
  expect(await world.store.ofTeam('nlp', 10)).toEqual([]);
  expect(world.messages).toEqual([]);
});

test('validate answers the findings of a file that is not valid, overrides applied', async () => {
  const answer = await world.ask({
    action: 'validate',
    runFile: RUN_FILE,
    overrides: ['compute.instanceType=ml.p9.48xlarge'],
  });
  expect(answer).toMatchObject({ ok: true, isValid: false });
});

test('validate of text that is no run file has its findings and no code', async () => {
  expect(await world.ask({ action: 'validate', runFile: '{' })).toMatchObject({
    ok: true,
    isValid: false,
    codeSource: null,
    issues: [{ rule: 'schema/yaml' }],
  });
});

test('plan answers what the command line prints', async () => {
  const answer = await world.ask({ action: 'plan', runFile: MODEL });
  const { value } = loadRun(MODEL);
  const expected = value && planDocument(value, { region: 'us-west-2' });
  expect(answer).toMatchObject({ ok: true });
  expect(JSON.parse(JSON.stringify(answer))).toEqual(JSON.parse(JSON.stringify({ ok: true, plan: expected })));
});

test('fails: a run without a model has no plan, and the refusal says what is missing', async () => {
  const answer = await world.ask({
    action: 'plan',
    runFile: 'name: a\ncode: { source: ./src }\ncompute: { instanceType: ml.p4d.24xlarge }\n',
  });
  expect(answer).toMatchObject({ ok: false });
  expect((answer as { issues: unknown[] }).issues.length).toBeGreaterThan(0);
});

const FITS = ['training.sequenceLength=1024'];
const inDays = (days: number) => new Date(world.now() + days * 86_400_000).toISOString();

test('plan by a date answers the offers of the command line, and what training plans to look for', async () => {
  const answer = await world.ask({ action: 'plan', runFile: MODEL, overrides: FITS, by: inDays(30) });
  expect(answer).toMatchObject({
    ok: true,
    byDate: { by: inDays(30), offers: [{ kind: expect.any(String) }, { kind: expect.any(String) }] },
    needs: { instanceType: 'ml.p4d.24xlarge', instances: 8, hours: expect.any(Number) },
  });
  const { offers } = (answer as unknown as { byDate: object }).byDate as { offers: { kind: string; chance: number }[] };
  expect(offers.map(({ kind }) => kind).sort()).toEqual(['on-demand', 'spot']);
  expect(ANSWERS.offers.parse({ by: inDays(30), offers, notes: [] }).offers).toEqual(offers);
});

test('training plans that the caller has found are offers beside the others', async () => {
  const plan = {
    kind: 'own-training-plan' as const,
    id: 'arn:plan',
    blocks: [{ from: inDays(1), to: inDays(20) }],
    ...{ instances: 8, usd: 0, note: 'mine, paid already' },
  };
  const answer = await world.ask({
    action: 'plan',
    runFile: MODEL,
    overrides: FITS,
    by: inDays(30),
    trainingPlans: [plan],
  });
  const { offers } = (answer as unknown as { byDate: { offers: object[] } }).byDate;
  expect(offers).toContainEqual(
    expect.objectContaining({ kind: 'own-training-plan', id: 'arn:plan', usd: 0, chance: 1, makesDate: true }),
  );
});

test.each([
  ['a date that has passed', { by: -1 }, 'by: must be a time of the next 366 days'],
  ['a date too far away', { by: 400 }, 'by: must be a time of the next 366 days'],
  [
    'a run without an end',
    { by: 30, overrides: ['training.steps='] },
    'training: must set the length of training: totalTokens or steps; add totalTokens or steps',
  ],
])('fails: %s', async (_, { by, ...more }, message) => {
  const answer = await world.ask({ action: 'plan', runFile: MODEL, by: inDays(by), ...more });
  expect(answer).toMatchObject({ ok: false, issues: [{ message: expect.stringContaining(message) }] });
});
