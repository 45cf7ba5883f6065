// Comments, pages and rules cite what a reader of this repository can open: files that are there, or a public address.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from './support/repository-files';

const TEXT = /\.(ts|mts|mjs|py|md|ya?ml|json|sh|toml|txt)$|Dockerfile$/;
/** Data that carries the paths of where it came from. */
const DATA = /^(test\/fixtures\/|package-lock\.json|CHANGELOG\.md|docs\/facts\/)/;

const files = repositoryFiles().filter((file) => TEXT.test(file) && !DATA.test(file));

/** Blocks of code in a page (in other files three backquotes do not begin a line), and rows on patches, which name the files that they make. */
const NO_CITATIONS = /^```[\s\S]*?^```$|^\| \[.*\.patch\) \|.*$/gm;

/** Each citation that does not lead anywhere, with the file that holds it. */
function dangling(pattern: RegExp, leads: (found: string, file: string) => boolean): string[] {
  return files.flatMap((file) => {
    const text = readFileSync(path.join(ROOT, file), 'utf8').replace(NO_CITATIONS, '');
    return [...text.matchAll(pattern)]
      .map((match) => match[1] ?? '')
      .filter((found) => !leads(found, file))
      .map((found) => `${file}: ${found}`);
  });
}

test('every page of docs/ that is cited exists', () => {
  const cited = /(?<![\w/.*-])(docs\/[\w/.-]+\.(?:md|json))\b/g;
  expect(dangling(cited, (found) => existsSync(path.join(ROOT, found)))).toEqual([]);
});

test('every relative link of a page leads to a file', () => {
  const link = /\]\((?!https?:|#|mailto:)([^)\s#]+)(?:#[^)]*)?\)/g;
  const leads = (found: string, file: string) => existsSync(path.join(ROOT, path.dirname(file), found));
  expect(dangling(link, (found, file) => !file.endsWith('.md') || leads(found, file))).toEqual([]);
});

test('nothing cites a folder of notes that lies elsewhere', () => {
  const elsewhere = /(?<![\w/.-])((?:contract|facts|findings|conformance)\/[\w-]+\.(?:md|json|yaml))/g;
  const leads = (found: string, file: string) =>
    [ROOT, path.join(ROOT, path.dirname(file))].some((from) => existsSync(path.join(from, found)));
  expect(dangling(elsewhere, leads)).toEqual([]);
});
