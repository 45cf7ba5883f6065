// What the Python client asks of control is what the command line asks for the same, call by call; and what it reads by itself is equal.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { controlRequestSchema } from '../../lib/core/contracts/control-requests';
import { checkpointOrigin } from '../../lib/report/lineage/lineage';
import { mockClient } from '../support/mocked-clients';
import { PYTHON } from '../support/python';
import { runCli } from '../support/run-cli';
import { DESCRIPTOR } from '../support/runs';

const LAMBDA = mockClient(LambdaClient);
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
      attempts: [{}, { number: 5 }],
    };
    return { Payload: Buffer.from(JSON.stringify(answer)) };
  });
});

/** A request with its defaults, so that what one client leaves to the default equals what the other writes out. */
const whole = (call: Call | undefined) => controlRequestSchema.parse(call);
const pythonCalls = (action: string) => python.filter((call) => call.action === action).map(whole);

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

test('the log of each attempt is asked for by the number of the attempt, or by its place where an older launcher names none', () => {
  expect(pythonCalls('logs').map((call) => 'attempt' in call && call.attempt)).toEqual([1, 5]);
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

test.each([
  ['a run of GPUs', ['runs/sagemaker/llama2-13b.yaml']],
  [
    'a run of NeuronCores',
    ['runs/trainers/trn2-ddp.yaml', 'model.preset=llama3-8b', 'training.sequenceLength=4096', 'training.steps=100'],
  ],
])('prints and draws the plan of %s that the command line computes', async (_, [file = '', ...set]) => {
  const { stdout } = await runCli('plan', file, '--json', ...set.flatMap((option) => ['--set', option]));
  const program = `
import slipway._display
plan = slipway._display.PlanView(json.load(sys.stdin))
print(plan, plan._repr_html_())`;
  expect(python3(program, stdout)).toMatch(/^memory .*GiB per (GPU|NeuronCore)[\s\S]*cost [\s\S]*<table>/);
});

const LAUNCH = `
import argparse, slipway.__main__
from slipway.errors import Refused, UsageError
ERROR = {"level": "error", "message": "name: must be given", "rule": "r", "path": "name"}
class Given:
    def __init__(self, *issues): self.issues = issues
    def validate(self, file, set): return list(self.issues)
    def plan(self, file, set): raise Refused([ERROR])
    def launch(self, *_, **__): print("launched")
def launch(env):
    try: slipway.__main__._launch(env, argparse.Namespace(file="run.yaml", set=[], yes=False))
    except UsageError as error: print(f"{error.exit_code} slipway: {error}")
    except Refused as refusal: print(f"refused: {refusal}")
`;

test('fails: a launch without a terminal and --yes, as that of the command line', () => {
  expect(python3(`${LAUNCH}\nlaunch(Given())`)).toBe(
    '2 slipway: launch: must be confirmed, got no interactive terminal; add --yes',
  );
});

test('fails: a launch of a run file with errors, before it asks', () => {
  expect(python3(`${LAUNCH}\nlaunch(Given(ERROR))`)).toBe('refused: name: must be given');
});

test.each(['\n', 'n\n', ''])('fails: a launch that is answered with %j', (answer) => {
  const asked = `${LAUNCH}\nsys.stdin.isatty = lambda: True\nlaunch(Given())`;
  expect(python3(asked, answer)).toBe('2 slipway: launch: not confirmed; nothing was started');
});

test.each([
  ['run.yaml', true],
  ['run', true],
  ['C:/runs/run.yml', true],
  ['name: x', false],
  ['{"name": "x"}', false],
  ['name: x\nrun.yaml', false],
])('takes %j for a path: %s', (given, isPath) => {
  const program = `import slipway._run_source\nprint(slipway._run_source.is_path(json.load(sys.stdin)))`;
  expect(python3(program, JSON.stringify(given))).toBe(isPath ? 'True' : 'False');
});

test('fails: a run file that is no text is refused as one that is not there', () => {
  const program = `
import pathlib, tempfile, slipway._run_source
file = pathlib.Path(tempfile.mkdtemp()) / "run.yaml"
file.write_bytes(bytes([0xff, 0xfe, 0]))
try: slipway._run_source.read(file)
except slipway._run_source.UsageError as error: print(error)`;
  expect(python3(program)).toMatch(/run\.yaml: must be text in UTF-8, got byte 0xff; check the path$/);
});

test('output that is piped into head ends without a traceback', () => {
  const program = `
import slipway.__main__ as command
class Environment:
    def __init__(self, *_name, **_options): pass
    def runs(self, **_query): return [{"runId": "r" * 5000, "name": "n", "state": "completed"}] * 200
command.Environment = Environment
sys.exit(command.main(["list", "--environment", "lab", "--json"]))`;
  const script = `import runpy, sys\nrunpy.run_path(${JSON.stringify(SCRIPT)})\n${program}`;
  const { stderr } = spawnSync('bash', ['-c', '"$@" | head -c 1 > /dev/null', 'bash', PYTHON, '-c', script], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
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

test('--set of python -m slipway sends what is written, as the command line reads it', () => {
  const written = fc.oneof(
    fc.constantFrom('image.version=2.10', 'limits.maxCostUsd=', 'checkpoints={mode: none}', 'tags.a="1"', 'tags.a=x=y'),
    fc.constantFrom('environmentVariables.A=012345678901', 'tags.a=null', 'tags.a=true', 'no value', '', 'a.b=[1, "é'),
    fc.tuple(fc.constantFrom('tags.a', 'data[0].s3'), fc.string()).map((pair) => pair.join('=')),
  );
  const all = fc.sample(fc.array(written, { minLength: 1, maxLength: 4 }), 30);
  const program = `
import slipway.__main__ as command
command.Environment = lambda name, region: found['slipway'].Environment(${JSON.stringify(ENVIRONMENT)}, region='us-west-2', session=found['Session']())
for line in sys.stdin:
    command.main(['validate', ${JSON.stringify(RUN_FILE)}, '--environment', 'x', *('--set=' + text for text in json.loads(line))])`;
  const calls = lines(python3(program, all.map((each) => JSON.stringify(each)).join('\n')));
  expect(calls.map((call) => (JSON.parse(call) as Call).overrides)).toEqual(all);
});

test.each(['builtin', 'image'])(
  'code=%j is the folder of that name when there is one, and refused otherwise',
  (name) => {
    const program = `
import os, pathlib, tempfile
from slipway.errors import UsageError
os.chdir(tempfile.mkdtemp())
env = found['slipway'].Environment(${JSON.stringify(ENVIRONMENT)}, region='us-west-2', session=found['Session']())
try: env.launch(${JSON.stringify(RUN_FILE)}, code='${name}')
except UsageError as error: print(json.dumps(str(error)))
pathlib.Path('${name}').mkdir()
pathlib.Path('${name}', 'train.py').write_text('print(1)')
env.launch(${JSON.stringify(RUN_FILE)}, code='${name}')`;
    const [refused, start] = lines(python3(program)).map((line) => JSON.parse(line));
    expect(refused).toBe(`code.source: must be a folder that exists, got ${name}; give code= or correct the file`);
    expect(start).toMatchObject({ action: 'start', code: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } });
  },
);

test('set= takes a dictionary of values and texts of --set', () => {
  const program = `
from slipway._run_source import set_options
print(json.dumps([set_options({"a.b": 5, "c": "2.10", "d": None}), set_options(["c=2.10", "d="]), set_options(None)]))`;
  expect(JSON.parse(python3(program))).toEqual([['a.b=5', 'c="2.10"', 'd=null'], ['c=2.10', 'd='], []]);
});

test('a configuration is asked for with the status', () => {
  const asks = python.filter((call) => call.action === 'status' && call.configuration === true);
  expect(asks.map(({ runId }) => runId)).toEqual(['a-261121120000']);
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
  const texts = [
    ...markers.map((marker) => JSON.stringify(marker)),
    'no json',
    '[]',
    'null',
    '7',
    JSON.stringify({ step: 20, configHash: 'x'.repeat(5000) }),
  ];
  const found = compared(
    'found["checkpoint_origin"](a, b)',
    texts.map((text) => ['s3://b/step-20', text]),
  );
  const expected = texts.map((text) => checkpointOrigin('s3://b/step-20', text) ?? null);
  expect(found).toEqual(expected);
  expect(expected.filter((each) => each !== null).length).toBeGreaterThan(100);
});

test('markers of any size, number and content keep nobody from the others', () => {
  const program = `
import io, json, runpy, sys
sys.argv = ['x', sys.argv[2], sys.argv[3]]
runpy.run_path(${JSON.stringify(SCRIPT)}, run_name='loaded')
from slipway import _checkpoints
from slipway._checkpoints import committed_checkpoints
reads = []
class S3:
    def get_paginator(self, name):
        return self
    def paginate(self, Bucket, Prefix):
        sizes = {'step-1': 2_000_000_000, 'step-2': 50, 'step-3': 50, 'step-4': 50, 'step-5': 50}
        return [{'Contents': [{'Key': f'{Prefix}{name}/COMMITTED.json', 'Size': size} for name, size in sizes.items()]}]
    def get_object(self, Bucket, Key):
        reads.append(Key)
        texts = {'step-2': b'[' * 5_000_000, 'step-3': b'{"step": Infinity, "objects": []}', 'step-4': bytes([255])}
        return {'Body': io.BytesIO(texts.get(Key.split('/')[-2], b'{"step": 5, "objects": [], "savedAt": {"a": 1}}'))}
found = committed_checkpoints(S3(), {'checkpointBucket': 'b', 'team': 'nlp'}, 'r')
class Many(S3):
    def paginate(self, Bucket, Prefix):
        return [{'Contents': [{'Key': f'{Prefix}step-{step}/COMMITTED.json', 'Size': 50} for step in (10, 100, 11, 9)]}]
    def get_object(self, Bucket, Key):
        step = Key.split('/')[-2][5:]
        return {'Body': io.BytesIO(b'{"step": %s, "objects": []}' % step.encode())}
_checkpoints._MAX_MARKERS = 2
newest = [each['step'] for each in committed_checkpoints(Many(), {'checkpointBucket': 'b', 'team': 'nlp'}, 'r')]
print(json.dumps([[each['step'] for each in found], found[0]['savedAt'], len(reads), newest]))
`;
  const printed = execFileSync(PYTHON, ['-c', program, '', ENVIRONMENT, RUN_FILE], { encoding: 'utf8' });
  expect(JSON.parse(lines(printed).at(-1) ?? '')).toEqual([[5], null, 4, [11, 100]]);
});

/** A class of controls in place of a session of boto3: a subclass has `answer` for each request, and `run` is a run that asks it at once. */
const FOLLOWED = `
import io, time
time.sleep = lambda seconds: None
class Control:
    def client(self, service, region_name):
        return self
    def invoke(self, FunctionName, Payload):
        return {'Payload': io.BytesIO(json.dumps({'ok': True, **self.answer(json.loads(Payload))}).encode())}
    def run(self):
        return found['slipway'].Environment(${JSON.stringify(ENVIRONMENT)}, region='us-west-2', session=self).run('a')
`;

test.each([
  ['wait', 'run.wait(progress=False, poll=0)', 'completed'],
  ['logs', "list(run.logs(follow=True))[-1]['message']", 'last'],
])('%s goes on when the service fails now and then, and ends with the tenth failure in a row', (_, call, end) => {
  const program = `${FOLLOWED}
from slipway.errors import ServiceError
class Failing(Control):
    def __init__(self, fails, states):
        self.calls, self.fails, self.states = -1, fails, states
    def answer(self, request):
        self.calls += 1
        if self.fails(self.calls):
            raise found['ClientError']('ServiceException')
        state = self.states.pop(0) if request['action'] == 'status' else ''
        return {'runId': 'a', 'state': state, 'reason': '', 'attempts': [{}], 'attempt': 1, 'step': 1, 'committedStep': None, 'events': [
            {'id': str(self.calls), 'at': f'2026-11-30T00:00:{self.calls:02}.000Z', 'host': 'algo-1', 'message': 'last'}]}
def follow(fails):
    run = Failing(fails, ['running', 'running', 'running', 'completed']).run()
    return ${call}
print(json.dumps(str(follow(lambda call: call % 3 == 2))))
try:
    follow(lambda call: call > 1)
except ServiceError as error:
    print(json.dumps('failed'))
`;
  const [first, second] = python3(program).split('\n');
  expect(first).toContain(end);
  expect(second).toBe('"failed"');
});

test('a log that is followed is read whole once, and then its last minute alone', () => {
  const program = `${FOLLOWED}
class Live(Control):
    def __init__(self):
        self.looks, self.pages = 0, 0
    def answer(self, request):
        if request['action'] == 'status':
            self.looks += 1
            state = 'completed' if self.looks == 20 else 'running'
            ends = [f'2025-11-30T00:{8 * n:02}:00.000Z' for n in range(1, 5)] + [None]
            return {'runId': 'a', 'state': state, 'attempts': [{'number': n + 1, 'endedAt': end} for n, end in enumerate(ends)]}
        self.pages += 1
        at = [t for t in range(0, 40) if t * 60000 >= request.get('since', 0) - 1764460800000]
        page = int(request.get('nextToken') or 0)
        events = [{'id': str(request['attempt']) + str(t), 'at': f'2025-11-30T00:{t:02}:00.000Z', 'host': 'algo-1', 'message': 'x'} for t in at[page:page + 1]]
        return {'events': events, **({'nextToken': str(page + 1)} if page + 1 < len(at) else {})}
live = Live()
run = live.run()
from slipway._metrics import steps_of
lines = [{'at': '', 'attempt': 1, 'host': '', 'message': 'slipway {"event":"step","step":%s}' % step} for step in ['10.0', '7', '7.5', '"7"', 'null']]
print(json.dumps([len(list(run.logs(follow=True))), live.pages, [step['step'] for step in steps_of(lines)]]))
`;
  const [read, pages, steps] = JSON.parse(python3(program)) as [number, number, number[]];
  expect(read).toBe(200);
  expect(pages).toBeLessThan(200 + 19 * 4 + 1);
  expect(steps).toEqual([10, 7]);
});

test('a log that is followed has the lines of all attempts that come and go between two looks', () => {
  const program = `${FOLLOWED}
class Paused(Control):
    looks = 0
    def answer(self, request):
        if request['action'] == 'status':
            self.looks += 1
            attempts = [{'number': n, 'endedAt': f'2025-11-30T00:1{n}:00.000Z'} for n in range(1, 6)]
            attempts = attempts if self.looks > 1 else [{'number': 1, 'endedAt': None}]
            return {'runId': 'a', 'state': 'completed' if self.looks == 3 else 'running', 'attempts': attempts}
        n = request['attempt']
        return {'events': [{'id': str(n), 'at': f'2025-11-30T00:1{n}:00.000Z', 'host': 'algo-1', 'message': f'line {n}'}]}
run = Paused().run()
print(json.dumps([line['message'] for line in run.logs(follow=True)]))
`;
  expect(JSON.parse(python3(program))).toEqual(['line 1', 'line 2', 'line 3', 'line 4', 'line 5']);
});
