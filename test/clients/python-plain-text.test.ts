// The Python client shows text of jobs and colleagues as the command line does: visible characters, in the line where they belong.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainLine, plainText } from '../../lib/core/config/formats/plain-text';
import { draws } from '../support/draws';
import { HOSTILE, HOSTILE_TEXT, hiddenIn } from '../support/hostile-text';
import { PYTHON } from '../support/python';

const SOURCES = path.join(__dirname, '../../clients/python/src/slipway');
/** What a program prints as JSON; `display` and `plain` are modules of the client, `given` is read from stdin. */
function python(program: string, given: unknown) {
  const script = `
import importlib, json, sys, types
package = types.ModuleType("slipway")
package.__path__ = [${JSON.stringify(SOURCES)}]
sys.modules["slipway"] = package
display, plain = (importlib.import_module(f"slipway.{name}") for name in ("_display", "_plain_text"))
given = json.load(sys.stdin)
print(json.dumps(${program}))`;
  const input = JSON.stringify(given);
  return JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8', input, maxBuffer: 1e9 }));
}

test('every character alone is shown or left out as in TypeScript', () => {
  // Between letters of ASCII, so that no surrogate is in a pair.
  const all = Array.from({ length: 0x110000 }, (_, code) => `a${String.fromCodePoint(code)}b`);
  const shown: string[] = python('[plain.plain_text(text) for text in given]', all);
  const others = all.flatMap((text, code) => (plainText(text) === shown[code] ? [] : [code.toString(16)]));
  expect(others).toEqual([]);
});

test('texts become the same lines as in TypeScript', () => {
  const parts = fc.constantFrom(
    ...HOSTILE,
    '\u001b',
    '[',
    ']0;',
    '\u0007',
    '\u009d',
    ' ',
    '\t',
    '\n',
    '\ud800',
    'é',
    'x',
  );
  const texts = fc.sample(
    fc.array(parts, { maxLength: 12 }).map((found) => found.join('')),
    draws(300),
  );
  const [lines, whole] = python(
    '[[plain.plain_line(text, 20) for text in given], [plain.plain_text(text) for text in given]]',
    texts,
  );
  expect(lines).toEqual(texts.map((text) => plainLine(text, 20)));
  expect(whole).toEqual(texts.map(plainText));
});

test('tables, lines and pages of a hostile run are visible text, in as many lines as those of a harmless one', () => {
  const status = (text: string) => ({
    runId: 'a',
    state: 'failed',
    reason: text,
    attempts: [{ trainingJobName: text, status: text, firstStep: 1, lastStep: 2, reason: text }],
    attempt: 1,
    step: 2,
    committedStep: 2,
    spendUsd: 1,
    queuePosition: null,
    tags: { [text]: text },
    note: text,
  });
  const issue = (text: string) => ({ level: 'error', path: text, message: text, rule: text });
  const shown = (text: string): Record<string, string> =>
    python(
      `{
  "list": display.list_text([given["status"]]),
  "status": display.status_text(given["status"]),
  "progress": display.progress_line(given["status"]),
  "issues": display.IssueList([given["issue"]])._repr_html_(),
  "table": display.text_table((given["text"],), [(given["text"],)]),
}`,
      { text, status: status(text), issue: issue(text) },
    );
  const [hostile, harmless] = [shown(HOSTILE_TEXT), shown('harmless')];
  for (const [name, text] of Object.entries(hostile)) {
    expect(hiddenIn(text.replaceAll('\n', '')), name).toEqual([]);
    expect(text, name).toContain('job-');
    expect(text.split('\n').length, name).toBe(harmless[name]?.split('\n').length);
  }
});
