import { beforeEach, expect, test } from 'vitest';
import { planDocument } from '../../../lib/core/admission';
import { loadRun } from '../../../lib/core/config/load';
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
