// Each verb's help ends with two examples or more, and each is a call that the command line understands.
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { VERBS } from '../support/run-cli';
import { callsOf, misspelt, readCall } from '../support/shell-words';

/** The help of a verb with what stands after the list of options. */
function helpOf(verb: Command): string {
  let text = '';
  verb.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

test.each(VERBS)('$name', ({ name, command }) => {
  const [, examples = ''] = helpOf(command).split('Examples:\n');
  const calls = examples.split('\n').flatMap((line) => callsOf(line.replace(/\s+#.*$/, '').trim()));
  expect(calls.length).toBeGreaterThanOrEqual(2);
  expect(calls.flatMap(misspelt)).toEqual([]);
  expect(new Set(calls.map((call) => readCall(call).name))).toEqual(new Set([name]));
});
