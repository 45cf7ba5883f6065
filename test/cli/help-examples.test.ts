// Each verb's help ends with two examples or more, and each is a call that the command line understands.
import { expect, test } from 'vitest';
import { CLI } from '../support/run-cli';
import { callsOf, misspelt } from '../support/shell-words';

/** The help of a verb with what stands after the list of options. */
function helpOf(name: string): string {
  let text = '';
  const verb = CLI.commands.find((command) => command.name() === name);
  verb?.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

test.each(CLI.commands.map((command) => command.name()))('%s', (name) => {
  const [, examples = ''] = helpOf(name).split('Examples:\n');
  const calls = examples.split('\n').flatMap((line) => callsOf(line.replace(/\s+#.*$/, '').trim()));
  expect(calls.length).toBeGreaterThanOrEqual(2);
  expect(calls.flatMap(misspelt)).toEqual([]);
  expect(new Set(calls.map(([verb]) => verb))).toEqual(new Set([name]));
});
