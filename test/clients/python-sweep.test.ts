// A sweep of the Python client launches the cells of `slipway launch --matrix` and stops the runs that `--stop-when` stops.
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { earlyStop, matrixCells } from '../../lib/cli/launch/matrix/matrix';
import { isLoser, parseStopRule } from '../../lib/cli/launch/matrix/stop-rule';
import type { Descriptor } from '../../lib/core/config/descriptor';
import type { StatusAnswer } from '../../lib/core/contracts/control';
import { mockClient } from '../support/mocked-clients';
import { PYTHON } from '../support/python';
import { DESCRIPTOR } from '../support/runs';

/** What a program prints that has the client; `given` is read from stdin. */
function python(program: string, given: unknown) {
  const script = `
import json, runpy, sys
found = runpy.run_path(${JSON.stringify(path.join(__dirname, 'record_calls.py'))})
slipway = found["slipway"]
given = json.load(sys.stdin)
${program}`;
  return JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8', input: JSON.stringify(given) }));
}

test('rules are those of --stop-when, and lose the same runs', () => {
  const number = fc.constantFrom('1', '0.5', '2.25', '1e1');
  const rules = fc.tuple(
    fc.constantFrom('loss', 'goodput', 'spendUsd'),
    fc.constantFrom(' > ', '<'),
    fc.oneof(
      number,
      fc.constant('best'),
      fc.tuple(fc.constantFrom('*', ' + ', '-'), number).map(([o, n]) => `best ${o}${n}`),
    ),
    fc.constantFrom('', ' after 3 steps', ' after 1 step '),
  );
  const text = fc.oneof(
    rules.map((parts) => parts.join('')),
    fc.constantFrom(
      '',
      'loss',
      'loss > ',
      'accuracy > 3',
      'loss > best * x',
      '__proto__ > 3',
      'loss > 3\n',
      'loss > ٣',
      'loss > .5',
    ),
  );
  const samples = fc.array(fc.record({ step: fc.nat(9), value: fc.nat(8) }), { maxLength: 6 });
  const cases = fc.sample(fc.tuple(text, samples, fc.array(samples, { maxLength: 3 })), 400);
  const expected = cases.map(([rule, own, others]) => {
    try {
      return isLoser(parseStopRule(rule), own, others);
    } catch (error) {
      return (error as Error).message
        .replaceAll('--stop-when:', 'stop_when:')
        .replace(/--stop-when (".*")/, 'stop_when=$1');
    }
  });
  const program = `
from slipway._stop_rule import is_loser, parse_stop_rule
pairs = lambda samples: [(one["step"], one["value"]) for one in samples]
def judged(rule, own, others):
    try: return is_loser(parse_stop_rule(rule), pairs(own), [pairs(other) for other in others])
    except slipway.UsageError as error: return str(error)
print(json.dumps([judged(*case) for case in given]))`;
  expect(python(program, cases)).toEqual(expected);
  for (const verdict of [true, false]) expect(expected.filter((each) => each === verdict).length).toBeGreaterThan(20);
});

test('cells are those of --matrix', () => {
  const given = { 'code.arguments.lr': [0.02, 0.1], 'model.preset': ['a', 'b'], 'training.steps': [1, 2, 3] };
  const options = Object.entries(given).map(([name, values]) => `${name}=${values.join()}`);
  const program =
    'from slipway.sweep import cells_of, label_of\nprint(json.dumps([label_of(cell) for cell in cells_of(given)]))';
  expect(python(program, given)).toEqual(matrixCells(options).map(({ label }) => label));
});

test.each<[object, string]>([
  [{}, 'matrix: must give 2 to 32 runs, got 0; name other values'],
  [{ a: [1] }, 'matrix: must have two or more different values for a path, got a: [1]; write matrix='],
  [{ a: 'xy' }, 'matrix: must have two or more different values for a path, got a: xy; write matrix='],
  [{ a: [1, 1] }, 'matrix: must have two or more different values for a path, got a: [1, 1]; write matrix='],
  [
    { a: 1 },
    "matrix: must have two or more different values for a path in plain types ('int' object is not iterable), got a: 1; write matrix=",
  ],
  [{ a: [...Array(33).keys()] }, 'matrix: must give 2 to 32 runs, got 33; name other values'],
])('fails: %j is no matrix', (matrix, message) => {
  const program = `
from slipway.sweep import cells_of
try: cells_of(given)
except slipway.UsageError as error: print(json.dumps(str(error)))`;
  expect(python(program, matrix)).toContain(message);
});

const RULE = 'loss > best * 1.5 after 20 steps';
type Observation = Pick<StatusAnswer, 'state' | 'step' | 'loss'>;
const running = (step: number, loss: number): Observation => ({ state: 'running', step, loss });
/** By cell, what each observation of it says; the last from then on. */
const OBSERVATIONS: Record<string, Observation[]> = {
  a: [running(10, 5), running(30, 4), running(40, 4), { state: 'stopped', step: 40, loss: 4 }],
  b: [running(10, 1.3), running(30, 1), running(60, 0.5), { state: 'completed', step: 60, loss: 0.5 }],
  c: [running(30, 1.2), running(60, 0.4), { state: 'completed', step: 61, loss: 0.4 }],
};
const status = (runId: string, one: Observation) => ({
  ...one,
  runId,
  desiredState: 'run',
  reason: '',
  attempts: [{}],
  committedStep: null,
});

test('a sweep tags its runs, stops the loser with the call of --stop-when, and puts the lowest loss first', async () => {
  const program = `
import io, slipway.sweep
calls, names, seen = [], iter("abc"), {}
slipway.sweep.time.sleep = lambda seconds: None
class Lambda:
    def invoke(self, FunctionName, Payload):
        asked = json.loads(Payload)
        calls.append(asked)
        return {"Payload": io.BytesIO(json.dumps({"ok": True, **answer(asked)}).encode())}
def answer(asked):
    run, action = asked.get("runId"), asked["action"]
    if action == "start" and not asked.get("confirm"): return {"runId": next(names), "uploads": []}
    if action == "validate": return {"isValid": True, "issues": [], "codeSource": "builtin"}
    if action == "logs": return {"events": [{"id": "1", "at": "2026-11-23T00:00:00.000Z", "host": "algo-1", "message": 'slipway {"event": "step", "step": 1, "loss": %s}' % given["observations"][run][-1]["loss"]}]}
    if action != "status": return {}
    place = seen[run] = seen.get(run, -1) + 1
    observations = given["observations"][run]
    return {**observations[min(place, len(observations) - 1)], "goodput": None, "spendUsd": 1}
class Session:
    def client(self, service, region_name): return Lambda()
open(given["folder"], "w").write(json.dumps(given["descriptor"]))
env = slipway.Environment(given["folder"], session=Session())
sweep = env.sweep("name: x\\n", {"code.arguments.lr": [1, 2, 3]}, set={"training.steps": 9}, stop_when=given["rule"], note="first")
rows = sweep.wait(progress=False)
print(json.dumps({"calls": calls, "rows": rows, "id": sweep.id}))`;
  const observations = Object.fromEntries(
    Object.entries(OBSERVATIONS).map(([id, all]) => [id, all.map((one) => status(id, one))]),
  );
  const descriptor = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:1:function:f:team-nlp' };
  const folder = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-sweep-')), 'descriptor.json');
  const { calls, rows, id } = python(program, { observations, descriptor, folder, rule: RULE });
  const of = (action: string) => calls.filter((call: { action: string }) => call.action === action);
  const starts = of('start').filter(({ confirm }: { confirm?: boolean }) => !confirm);
  expect(id).toMatch(/^matrix-\d{12}$/);
  expect(starts.map(({ overrides }: { overrides: string[] }) => overrides)).toEqual(
    matrixCells(['code.arguments.lr=1,2,3']).map(({ set }) => ['training.steps=9', ...set, `tags.matrix="${id}"`]),
  );
  expect(starts.map(({ note }: { note: string }) => note)).toEqual(['first', 'first', 'first']);
  expect(calls.findIndex(({ action }: { action: string }) => action === 'start')).toBeGreaterThan(2);
  expect(of('stop')).toEqual(await stopsOfCli(observations as never));
  expect(rows.map(({ runId, label, stoppedEarly }: Record<string, unknown>) => [runId, label, stoppedEarly])).toEqual([
    ['c', 'code.arguments.lr=3', false],
    ['b', 'code.arguments.lr=2', false],
    ['a', 'code.arguments.lr=1', true],
  ]);
});

/** What the command line asks to stop when it sees the same. */
async function stopsOfCli(observations: Record<string, StatusAnswer[]>): Promise<unknown[]> {
  const asked: unknown[] = [];
  const lambda = mockClient(LambdaClient);
  lambda.on(InvokeCommand).callsFake(({ Payload }) => {
    asked.push(JSON.parse(Buffer.from(Payload).toString()));
    return { Payload: Buffer.from(JSON.stringify({ ok: true })) };
  });
  const descriptor = { name: 'lab', team: 'nlp', region: 'us-west-2', controlAliasArn: 'arn:alias' } as Descriptor;
  const early = earlyStop(parseStopRule(RULE), descriptor, { out: () => undefined, err: () => undefined });
  for (let place = 0; place < 4; place++)
    for (const all of Object.values(observations)) {
      const seen = all[place];
      if (seen) await early.observe(seen);
    }
  expect(asked).toHaveLength(1);
  return asked;
}

test('fails: a refusal in the middle names what is launched; runs with the same label are two', () => {
  const program = `
import contextlib, io
names = iter("ab")
class Lambda:
    def invoke(self, FunctionName, Payload):
        call = json.loads(Payload)
        answer = {"isValid": True, "issues": [], "codeSource": "builtin"} if call["action"] == "validate" else {}
        if call["action"] == "start" and not call.get("confirm"):
            name = next(names, None)
            if name is None: return {"Payload": io.BytesIO(json.dumps({"ok": False, "issues": [{"level": "error", "message": "budget: is spent"}]}).encode())}
            answer = {"runId": name, "uploads": []}
        return {"Payload": io.BytesIO(json.dumps({"ok": True, **answer}).encode())}
class Session:
    def client(self, service, region_name): return Lambda()
open(given["folder"], "w").write(json.dumps(given["descriptor"]))
said = io.StringIO()
with contextlib.redirect_stderr(said):
    try: slipway.Environment(given["folder"], session=Session()).sweep("name: x\\n", {"a": [1, "1", 2]})
    except slipway.Refused as refused: error = str(refused)
print(json.dumps([error, said.getvalue()]))`;
  const descriptor = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:1:function:f:team-nlp' };
  const folder = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-sweep-')), 'descriptor.json');
  expect(python(program, { descriptor, folder })).toEqual([
    'budget: is spent',
    expect.stringMatching(/^matrix-\d{12}: 2 of 3 runs are launched and go on: a, b\n$/),
  ]);
});

test('fails: what is wrong with one cell refuses all of them, by its label', () => {
  const program = `
import io
asked = []
issue = {"rule": "r", "level": "error", "path": "a", "message": "a: must be small"}
class Lambda:
    def invoke(self, FunctionName, Payload):
        call = json.loads(Payload)
        asked.append(call["action"])
        issues = [issue] if "a=2" in call.get("overrides", []) else []
        return {"Payload": io.BytesIO(json.dumps({"ok": True, "isValid": True, "issues": issues}).encode())}
class Session:
    def client(self, service, region_name): return Lambda()
open(given["folder"], "w").write(json.dumps(given["descriptor"]))
try: slipway.Environment(given["folder"], session=Session()).sweep("name: x\\n", {"a": [1, 2]})
except slipway.Refused as refused: print(json.dumps([str(refused), asked]))`;
  const descriptor = { ...DESCRIPTOR, controlAliasArn: 'arn:aws:lambda:us-west-2:1:function:f:team-nlp' };
  const folder = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-sweep-')), 'descriptor.json');
  expect(python(program, { descriptor, folder })).toEqual(['a=2: a: must be small', ['validate', 'validate']]);
});
