// Messages that pages tell people to search for are messages of the code.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.join(__dirname, '../..');

function sourceText(): string {
  const files = ['lib', 'containers'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => path.join(folder, file)),
  );
  const texts = files
    .filter((file) => /\.(ts|py)$/.test(file))
    .map((file) => readFileSync(path.join(ROOT, file), 'utf8'));
  return texts.join('\n');
}

/** Messages of other programs. */
const FOREIGN = ['cannot be deleted while TerminationProtection is enabled'];

/** The words of a message that no value interrupts: the parts between `...`, the option in front left out. */
const partsOf = (message: string): string[] =>
  message
    .split(/\.\.\./)
    .map((part) => part.replace(/^.*?: (?=must|this)/, '').trim())
    .filter((part) => part.split(' ').length >= 3);

/** First cells of the tables below the headings of messages. */
function messagesOf(page: string): string[] {
  const rows = readFileSync(path.join(ROOT, page), 'utf8').matchAll(/^\| (`[^|]*`[^|]*) \|/gm);
  return [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]*)`/g)].map((found) => found[1] ?? ''));
}

test.each(['docs/guides/troubleshooting.md', 'README.md'])('the messages of %s are those of the code', (page) => {
  const source = sourceText();
  const parts = messagesOf(page)
    .flatMap(partsOf)
    .filter((part) => !FOREIGN.includes(part));
  expect(parts.length).toBeGreaterThan(3);
  expect(parts.filter((part) => !source.includes(part))).toEqual([]);
});
