import { expect, test } from 'vitest';
import { program } from '../../lib/cli/main';
import { manPage } from '../../lib/cli/man-page';
import { processTerminal } from '../../lib/cli/terminal';

const commandLine = program(processTerminal, () => undefined);
const lines = manPage(commandLine).split('\n');
const REQUESTS = /^\.(TH|SH|SS|TP|PP|B|I|RI|RS|RE|nf|fi)( |$)/;

test('every verb, option and example of the command line is on the page', () => {
  const page = lines.join('\n').replaceAll('\\-', '-').replaceAll('\\e', '\\');
  const verbs = commandLine.commands.filter((verb) => verb.name() !== 'help');
  const missing = verbs.flatMap((verb) =>
    [`.SS slipway ${verb.name()}`, ...verb.options.map(({ flags }) => `\\fB${flags}\\fR`)].filter(
      (words) => !page.includes(words),
    ),
  );
  expect(missing).toEqual([]);
  expect(lines.filter((line) => line === 'Examples:')).toHaveLength(verbs.length);
});

test('no text is taken for a request of troff', () => {
  expect(lines.filter((line) => /^[.']/.test(line) && !REQUESTS.test(line))).toEqual([]);
  expect(lines.filter((line) => /(^|[^\\])-/.test(line) && !line.startsWith('.TH'))).toEqual([]);
});
