// What a notebook draws of the answers of the Python client.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { HOSTILE_TEXT, hiddenIn } from '../support/hostile-text';
import { PYTHON } from '../support/python';

const SOURCES = path.join(__dirname, '../../clients/python/src/slipway');

/** What an expression returns; `views` is the module, `given` its data. */
function python(expression: string, given: unknown) {
  const script = `
import importlib, json, sys, types
package = types.ModuleType("slipway")
package.__path__ = [${JSON.stringify(SOURCES)}]
sys.modules["slipway"] = package
views = importlib.import_module("slipway._views")
given = json.load(sys.stdin)
print(json.dumps(${expression}))`;
  return JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8', input: JSON.stringify(given) }));
}

const status = (text: string) => ({
  runId: 'gpt-1',
  name: 'gpt',
  state: 'running',
  reason: text,
  attempts: [
    {
      trainingJobName: 'a-gpt-1-a001',
      status: 'Failed',
      firstStep: 1,
      lastStep: 26,
      reason: text,
      startedAt: '2026-11-28T09:00:00.000Z',
      endedAt: '2026-11-28T10:00:00.000Z',
    },
    {
      trainingJobName: 'a-gpt-1-a002',
      status: 'InProgress',
      firstStep: 21,
      lastStep: 40,
      reason: '',
      startedAt: '2026-11-28T10:30:00.000Z',
      endedAt: null,
    },
  ],
  attempt: 2,
  step: 40,
  committedStep: 30,
  loss: 2.5,
  goodput: 0.825,
  progressPercent: 40,
  etaAt: '2026-11-28T18:05:00.000Z',
  etaInterval80: ['2026-11-28T17:40:00.000Z', '2026-11-28T19:10:00.000Z'],
  spendUsd: 41.2,
  queuePosition: null,
  tags: { [text]: text },
  note: text,
});
const event = (at: number, text: string) => ({
  at: new Date(Date.UTC(2026, 10, 28, 9, at)).toISOString(),
  what: 'attempt-ended',
  text,
  evidence: {},
  runId: 'gpt-1',
});
const checkpoint = (text: string) => ({
  step: 20,
  attempt: 1,
  uri: `s3://checkpoints/${text}`,
  savedAt: '2026-11-28T09:40:00.000Z',
  objects: 3,
  sizeBytes: 3 * 1024 ** 3,
  worldSize: 8,
  isComplete: false,
  origin: null,
});
const all = (text: string): Record<string, string> =>
  python(
    `{
  "runs": views.RunsView([given["status"]])._repr_html_(),
  "status": views.StatusView(given["status"])._repr_html_(),
  "timeline": views.TimelineView(given["events"])._repr_html_(),
  "checkpoints": views.CheckpointsView([given["checkpoint"]])._repr_html_(),
}`,
    { status: status(text), events: [event(0, text)], checkpoint: checkpoint(text) },
  );

test('a status shows progress, expected end, goodput and spend, and its attempts as bars over time', () => {
  const { status: html = '' } = all('lost a host');
  for (const text of [
    '40 (40 %)',
    '11-28 18:05',
    '11-28 17:40 to 11-28 19:10',
    '82.5 %',
    '$41.20',
    'lost a host',
    'a-gpt-1-a002',
  ])
    expect(html).toContain(text);
  const bars = [...html.matchAll(/<rect [^>]*x="([\d.]+)"[^>]*width="([\d.]+)"/g)].map(([, x, width]) => [
    Number(x),
    Number(width),
  ]);
  expect(bars).toHaveLength(2);
  expect(bars[1]?.[0]).toBeGreaterThan((bars[0]?.[0] ?? 0) + (bars[0]?.[1] ?? 0));
});

test('what is not known is a dash, and a run without a job has no chart', () => {
  const bare = {
    ...status(''),
    attempts: [],
    step: null,
    committedStep: null,
    loss: null,
    goodput: null,
    spendUsd: null,
  };
  const html: string = python('views.StatusView(given)._repr_html_()', { ...bare, progressPercent: null, etaAt: null });
  expect(html).not.toContain('<svg');
  expect(html.match(/<td>-<\/td>/g)?.length).toBeGreaterThanOrEqual(4);
  expect(html).not.toMatch(/None|nan/i);
});

test('runs are the table of slipway list', () => {
  const { runs = '' } = all('lost a host');
  expect(runs).toContain('<th>committed</th>');
  expect(runs).toContain('<td>gpt-1</td>');
});

test('a long timeline shows its newest events, and says how many came before', () => {
  const events = Array.from({ length: 130 }, (_, i) => event(i, `event ${i}`));
  const html: string = python('views.TimelineView(given)._repr_html_()', events);
  expect(html).toContain('event 129');
  expect(html).not.toContain('event 79<');
  expect(html).toContain('80 earlier');
  expect(python('len(views.TimelineView(given))', events)).toBe(130);
});

test('checkpoints show size and whether they are complete', () => {
  const { checkpoints = '' } = all('a');
  expect(checkpoints).toContain('<td>3 GiB</td>');
  expect(checkpoints).toContain('<td>no</td>');
});

test('answers stay what they are: lists and dictionaries, as JSON', () => {
  const given = { status: status('x'), events: [event(0, 'x')] };
  expect(python('[views.StatusView(given["status"]), views.TimelineView(given["events"])]', given)).toEqual([
    given.status,
    given.events,
  ]);
});

test('notebook.ipynb keeps what its cells show', () => {
  const { cells } = JSON.parse(readFileSync(path.join(SOURCES, '../../examples/notebook.ipynb'), 'utf8'));
  const code = cells.filter((cell: { cell_type: string }) => cell.cell_type === 'code');
  expect(code.length).toBeGreaterThan(4);
  for (const { outputs, source } of code) {
    expect(outputs, source.join('')).not.toEqual([]);
    expect(JSON.stringify(outputs)).not.toMatch(/\/tmp\/|Traceback/);
  }
});

test('hostile text of a job is text', () => {
  for (const [name, html] of Object.entries(all(`${HOSTILE_TEXT}<script>alert(1)</script>`))) {
    expect(hiddenIn(html.replaceAll('\n', '')), name).toEqual([]);
    expect(html, name).not.toMatch(/<script/);
    expect(html, name).toContain('&lt;script&gt;');
  }
});
