// Every shell block of the documentation is run here, where it needs nothing but this repository; a block that needs an account, the
// sandbox or a file of the reader says so in a comment on the line before it: `not run: reason`. The words of every call of slipway
// are checked either way.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Block, blocksOf, pages } from '../support/pages';
import { ROOT } from '../support/repository-files';
import { runCli } from '../support/run-cli';
import { callsOf, misspelt, readCall } from '../support/shell-words';

/** Pages whose blocks another test plays word for word. */
const PLAYED = ['README.md'];
/** Verbs that need nothing but files. */
const OFFLINE = ['validate', 'plan', 'tools schema', 'tools completion'];
const SHELLS = ['sh', 'bash', 'shell', 'console'];

/** Commands of a block: without comments and here-documents, lines that go on joined. */
function commandsOf(text: string): string[] {
  return text
    .replaceAll(/<<-?\s*'?(\w+)'?(.*)\n[\s\S]*?^\s*\1$/gm, '$2')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
    .filter((line) => line !== '');
}

const SCRIPTS = Object.keys(
  (JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { scripts: object }).scripts,
);
const missingScripts = (command: string): string[] =>
  [...command.matchAll(/npm run (?:-s |--silent )?([\w:.-]+)/g)].flatMap(([, name = '']) =>
    SCRIPTS.includes(name) ? [] : [`no script ${name}`],
  );

const isRunHere = (command: string): boolean => {
  const [call = [], ...others] = callsOf(command);
  return others.length === 0 && OFFLINE.includes(readCall(call).name) && !/[|;&>]/.test(command);
};

const BLOCKS = pages()
  .flatMap(blocksOf)
  .filter(({ language }) => SHELLS.includes(language));
const named = (blocks: Block[]) => blocks.map((block) => [`${block.page}:${block.line}`, block] as const);

test.each(named(BLOCKS))('%s has verbs, options and scripts that exist', (_, { text }) => {
  const commands = commandsOf(text);
  expect(commands.flatMap((command) => [...callsOf(command).flatMap(misspelt), ...missingScripts(command)])).toEqual(
    [],
  );
});

test.each(named(BLOCKS.filter(({ reason, page }) => reason === undefined && !PLAYED.includes(page))))(
  '%s runs',
  async (_, { text }) => {
    const commands = commandsOf(text);
    expect(
      commands.filter((command) => !isRunHere(command)),
      'mark the block: <!-- not run: reason -->',
    ).toEqual([]);
    for (const [words = []] of commands.map(callsOf)) {
      const files = words.map((word) =>
        existsSync(path.join(ROOT, word)) && word.includes('/') ? path.join(ROOT, word) : word,
      );
      const { code, stderr } = await runCli(...files);
      expect([words.join(' '), code, code === 0 ? '' : stderr]).toEqual([words.join(' '), 0, '']);
    }
  },
);
