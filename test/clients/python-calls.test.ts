// What the Python client asks of control is what the command line asks for the same, call by call; and what it compares by itself is equal.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { controlRequestSchema } from '../../lib/core/contracts/control-requests';
import { type DifferentOption, differentOptions, lossAtEqualSteps } from '../../lib/report/compare/diff-runs';
import { checkpointOrigin, lineageRows, lineageRun } from '../../lib/report/lineage/lineage';
import { mockClient } from '../support/mocked-clients';
import { PYTHON } from '../support/python';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const LAMBDA = mockClient(LambdaClient);
const S3 = mockClient(S3Client);
const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-calls-'));
const ENVIRONMENT = path.join(FOLDER, 'descriptor.json');
const RUN_FILE = path.join(FOLDER, 'run.yaml');
const ALIAS = 'arn:aws:lambda:us-west-2:111122223333:function:f:team-nlp';
writeFileSync(ENVIRONMENT, JSON.stringify({ ...DESCRIPTOR, controlAliasArn: ALIAS }));
writeFileSync(RUN_FILE, readFileSync(path.join(__dirname, '../../runs/builtin/demo.yaml')));
const SCRIPT = path.join(__dirname, 'record_calls.py');

type Call = Record<string, unknown> & { action: string };
const lines = (text: string) => text.trim().split('\n');
const python: Call[] = lines(execFileSync(PYTHON, [SCRIPT, ENVIRONMENT, RUN_FILE], { encoding: 'utf8' })).map((line) =>
  JSON.parse(line),
);

let asked: Call[] = [];
beforeEach(() => {
  asked = [];
  LAMBDA.reset();
  LAMBDA.on(InvokeCommand).callsFake(({ Payload }) => {
    asked.push(JSON.parse(Buffer.from(Payload).toString()));
    const answer = {
      ok: true,
      runs: [],
      events: [],
      runId: 'r',
      note: 'x',
      desiredState: 'stop',
      state: 'queued',
      attempts: [{}],
    };
    return { Payload: Buffer.from(JSON.stringify(answer)) };
  });
});

/** A request with its defaults, so that what one client leaves to the default equals what the other writes out. */
const whole = (call: Call | undefined) => controlRequestSchema.parse(call);
/** Those that the client was asked for: a comparison of runs reads progress lines besides. */
const pythonCalls = (action: string) =>
  python.filter((call) => call.action === action && call.progressOnly !== true).map(whole);

test('every request is one that control takes', () => {
  for (const call of python) expect(controlRequestSchema.safeParse(call).error, JSON.stringify(call)).toBeUndefined();
});

test.each<[action: string, words: string[]]>([
  ['list', ['list', '--state', 'running,queued', '--tag', 'matrix=x', '--tag', 'project', '--search', 'rate']],
  ['note', ['status', 'a-261121120000', '--note', 'half of it']],
  ['stop', ['stop', 'a-261121120000']],
  ['resume', ['resume', 'a-261121120000']],
  ['release', ['stop', 'a-261121120000', '--release-pool']],
  ['logs', ['logs', 'a-261121120000', '--node', '2', '--since', '2026-11-22T00:00:00Z']],
])('%s', async (action, words) => {
  await runCli(...words, '--environment', ENVIRONMENT);
  expect(asked.filter((call) => call.action === action).map(whole)).toEqual(pythonCalls(action));
});

/** What a program prints that has the client's modules. */
function python3(program: string, input = ''): string {
  const script = `import json, runpy, sys\nfound = runpy.run_path(${JSON.stringify(SCRIPT)})\n${program}`;
  return execFileSync(PYTHON, ['-c', script], { input, encoding: 'utf8' }).trim();
}

const LISTED = {
  ...{ runId: 'a-261121120000', name: 'a', team: 'nlp', state: 'running', desiredState: 'run', reason: 'as it should' },
  ...{
    attempts: [{}, {}],
    committedStep: 20,
    step: 24,
    loss: null,
    goodput: null,
    spendUsd: null,
    queuePosition: null,
  },
};
const QUEUED = {
  ...LISTED,
  runId: 'b',
  state: 'queued',
  attempts: [],
  step: null,
  committedStep: null,
  queuePosition: 3,
};

test.each([
  ['runs alone', [LISTED, QUEUED]],
  ['runs with their costs', [{ ...LISTED, createdAt: '2026-11-27T10:00:59.000Z', spendUsd: 12.345 }, QUEUED]],
  ['runs with tags', [{ ...LISTED, attempt: 7, tags: { project: 'llama', matrix: 'x' } }, QUEUED]],
  ['runs with notes', [LISTED, { ...QUEUED, note: 'best rate' }]],
  ['no runs', []],
])('list prints %s as `slipway list` does', async (_, runs) => {
  LAMBDA.on(InvokeCommand).resolves({ Payload: Buffer.from(JSON.stringify({ ok: true, runs })) as never });
  const { stdout } = await runCli('list', '--environment', ENVIRONMENT);
  const program = `
import argparse, slipway.__main__
class Runs:
    def runs(self, **asked): return json.load(sys.stdin)
slipway.__main__._list(Runs(), argparse.Namespace(state=None, tag=None, search=None, json=False))`;
  expect(python3(program, JSON.stringify(runs))).toBe(stdout);
});

test('fails: a state that is none is refused by both in the same words', async () => {
  const { code, stderr } = await runCli('list', '--state', 'queued, runing', '--environment', ENVIRONMENT);
  const program = `
import slipway.__main__
try: slipway.__main__._states("queued, runing")
except slipway.__main__.UsageError as error: print(f"{error.exit_code} slipway: {error}")`;
  expect(python3(program)).toBe(`${code} ${stderr}`);
});

test('a launch says note, time, order and preemption as `slipway launch` does', () => {
  const [launch] = python.filter((call) => call.action === 'start');
  expect(launch).toMatchObject({
    overrides: ['training.steps=5', 'after=["latest:base"]', 'preemptible=true'],
    note: 'best rate',
    startAt: '2027-01-02T00:00:00.000Z',
    acceptsUnknownPrice: true,
  });
});

test('a diff asks for what both runs were launched with', () => {
  const asks = python.filter((call) => call.action === 'status' && call.configuration === true);
  expect(asks.map(({ runId }) => runId)).toEqual(['a-261121120000', 'b-261121120000']);
});

/** What the client finds for each pair. */
function compared<T>(function_: string, pairs: readonly unknown[]): T[] {
  const program = `
for line in sys.stdin:
    a, b = json.loads(line)
    print(json.dumps(${function_}))
`;
  return lines(python3(program, pairs.map((pair) => JSON.stringify(pair)).join('\n'))).map((line) => JSON.parse(line));
}

test('differences of options are those that `slipway report --diff` finds, whatever the options', () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 1, 0.5, 'fsdp', 'é', ''),
      fc.array(tie('any'), { maxLength: 3 }),
      tie('group'),
    ),
    group: fc.dictionary(fc.constantFrom('steps', 'shard_degree', 'a b', 'é', '"', 'x-1'), tie('any'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  }));
  const pairs = fc.sample(fc.tuple(value.group, value.group), 300);
  // JSON has no member without a value, so that an absent one and null are equal for both.
  const expected = pairs.map(([a, b]) =>
    differentOptions(a, b).filter(({ values: [x, y] }) => x !== null || y !== null),
  );
  const found = compared<DifferentOption[]>('found["different_options"](a, b)', pairs);
  expect(found.map((each) => each.filter(({ values: [x, y] }) => x !== null || y !== null))).toEqual(expected);
  expect(expected.flat().length).toBeGreaterThan(100);
});

test('losses at equal steps are those of `slipway report --diff`', () => {
  const step = fc.record({
    step: fc.integer({ min: 1, max: 40 }),
    loss: fc.integer({ min: 1, max: 9 }),
    attempt: fc.constant(1),
    at: fc.constant(''),
  });
  const pairs = fc.sample(fc.tuple(fc.array(step, { maxLength: 60 }), fc.array(step, { maxLength: 60 })), 100);
  const none = '{"spec": {}, "codeSha256": None, "driverHash": "", "trainingImageUri": None}';
  const found = compared(`found["diff_of"](${none}, ${none}, (a, b))["lossAtSteps"]`, pairs);
  expect(found).toEqual(pairs.map(([a, b]) => lossAtEqualSteps(a, b)));
});

const TEXT = fc.constantFrom('', 'a', 's3://b/runs/nlp/base/step-20/', 's3://{dataBucket}/x', 'base-261121120000');
const NUMBER = fc.constantFrom<unknown>(null, 0, 20, 1.5, true, 'x');

test('what a checkpoint says of itself is read as `slipway status --lineage` does, whatever its marker holds', () => {
  const names = ['runId', 'attempt', 'step', 'tokens', 'savedAt', 'configHash', 'codeDigest', 'imageUri'] as const;
  const fields = Object.fromEntries(names.map((name) => [name, fc.oneof(TEXT, NUMBER)]));
  const data = fc.oneof(
    fc.constant([]),
    fc.record({ digest: fc.oneof(TEXT, NUMBER), seed: NUMBER, nextSample: NUMBER }, { requiredKeys: [] }),
  );
  const markers = fc.sample(fc.record({ ...fields, step: fc.constantFrom<unknown>(20, 20, 20, 'x'), data }), 200);
  const texts = [...markers.map((marker) => JSON.stringify(marker)), 'no json', '[]', 'null', '7'];
  const found = compared(
    'found["checkpoint_origin"](a, b)',
    texts.map((text) => ['s3://b/step-20', text]),
  );
  const expected = texts.map((text) => checkpointOrigin('s3://b/step-20', text) ?? null);
  expect(found).toEqual(expected);
  expect(expected.filter((each) => each !== null).length).toBeGreaterThan(100);
});

test('what a run was made from is what `slipway status --lineage` says', () => {
  const channel = fc.oneof(
    fc.constant(null),
    fc.record({ channel: TEXT, s3: TEXT }, { requiredKeys: ['s3'] }),
    fc.record({ channel: TEXT, fsxLustre: fc.constant({ fileSystemId: 'fs-1', directoryPath: '/fsx' }) }),
  );
  const some: { requiredKeys: never[] } = { requiredKeys: [] };
  const spec = fc.record(
    {
      code: fc.record({ source: TEXT }),
      image: fc.record({ uri: TEXT, kind: fc.constantFrom('environment', 'dlc'), version: TEXT }, some),
      model: fc.record({ weights: TEXT }, some),
      checkpoints: fc.record({ startFrom: TEXT }, some),
      data: fc.array(channel, { maxLength: 3 }),
    },
    some,
  );
  const configuration = fc.record({
    spec,
    codeSha256: fc.constantFrom(null, 'c'),
    driverHash: fc.constant('d'),
    trainingImageUri: fc.constantFrom(null, 'i'),
  });
  const resumeFrom = fc.oneof(fc.constant(null), fc.record({ uri: TEXT, step: NUMBER }));
  const line = fc.record({
    at: fc.constant('2026-11-21T12:00:00.000Z'),
    what: fc.constantFrom('attempt-intended', 'job-created'),
    text: fc.constant(''),
    evidence: fc.record({ resumeFrom }, some),
  });
  const status = fc.record(
    { configuration, timeline: fc.array(line, { maxLength: 4 }) },
    { requiredKeys: ['timeline'] },
  );
  const marker = fc.constantFrom('{"step":20}', '{"step":20,"attempt":2,"imageUri":"j","data":{"digest":"e"}}', '');
  const drawn = fc.sample(fc.tuple(status, marker), 200).map(([one, text]) => {
    const checkpoint = checkpointOrigin('s3://b/step-20/', text);
    return [{ ...one, ...{ runId: 'r', name: 'n', team: 'nlp', state: 'failed' } }, checkpoint] as const;
  });
  const rows =
    'json.loads(json.dumps([(run := found["lineage_run"](a, b, {"dataBucket": "d"})), found["lineage_rows"](run)]))';
  const found = compared(
    rows,
    drawn.map(([one, checkpoint]) => [one, checkpoint ?? null]),
  );
  const expected = drawn.map(([one, checkpoint]) => {
    const fill = (text: string) => text.replace('{dataBucket}', 'd');
    const run = lineageRun({ status: one, configuration: one.configuration, checkpoint, fill });
    return [run, lineageRows(run)];
  });
  expect(found).toEqual(JSON.parse(JSON.stringify(expected)));
});

/** Lineage by both clients of published weights, whose run the launcher does not know; the message where it cannot be. */
async function lineages(published: string): Promise<[cli: unknown, python: unknown]> {
  const issue = { rule: 'control/run', level: 'error', path: 'runId', message: 'runId: no run tuned' };
  LAMBDA.on(InvokeCommand).resolves({
    Payload: Buffer.from(JSON.stringify({ ok: false, issues: [issue] })) as never,
  });
  S3.on(GetObjectCommand).callsFake(({ Key }) => {
    if (!Key.endsWith('slipway.json')) throw Object.assign(new Error('gone'), { name: 'NoSuchKey' });
    return { Body: { transformToString: async () => published } };
  });
  const { code, stdout } = await runCli(
    'status',
    's3://elsewhere/model',
    '--lineage',
    '--environment',
    ENVIRONMENT,
    '--json',
  );
  const script = `
import io, json, runpy, sys
found = runpy.run_path(${JSON.stringify(SCRIPT)})
from slipway._lineage import Reader, lineage_of
published, issue = json.load(sys.stdin)
class Gone(Exception): pass
class S3:
    exceptions = type("Exceptions", (), {"NoSuchKey": Gone})
    def get_object(self, Bucket, Key):
        if not Key.endswith("slipway.json"): raise Gone
        return {"Body": io.BytesIO(published.encode())}
class Control:
    def call(self, action, **more): raise found["slipway"].Refused([issue])
try: print(json.dumps(lineage_of(Reader(Control(), S3(), {}), "s3://elsewhere/model")))
except found["slipway"].UsageError as error: print(json.dumps(str(error)))`;
  const input = JSON.stringify([published, issue]);
  const python = JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8', input }));
  const document = JSON.parse(stdout);
  return [code === 0 ? document : document.issues[0].message, python];
}

test('published weights of a run that is gone have the lineage that lies beside them, as for `slipway status --lineage`', async () => {
  const lineage = { of: 'tuned', checkpoint: null, runs: [{ runId: 'tuned' }, { runId: 'base' }], notes: ['a note'] };
  const [cli, python] = await lineages(JSON.stringify({ lineage }));
  expect(cli).toEqual({
    ...lineage,
    of: 's3://elsewhere/model',
    notes: ['a note', 'tuned: shown as in slipway.json: runId: no run tuned'],
  });
  expect(python).toEqual(cli);
});

test.each(['', '{', '{}', '{"lineage":null}', '{"lineage":{"checkpoint":null,"runs":[],"notes":[]}}'])(
  'fails: %j beside the weights is no lineage, and both say the same',
  async (published) => {
    const [cli, python] = await lineages(published);
    expect(cli).toContain('lineage: must be a folder with COMMITTED.json of a run or with slipway.json, got s3://else');
    expect(python).toBe(cli);
  },
);
