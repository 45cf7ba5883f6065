// Comments, pages and rules cite what a reader of this repository can open: files that are there, or a public address.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from './support/repository-files';

const TEXT = /\.(ts|mts|mjs|py|md|ya?ml|json|sh|toml|txt)$|Dockerfile$/;
/** Data that carries the paths of where it came from. */
const DATA = /^(test\/fixtures\/|package-lock\.json|CHANGELOG\.md|docs\/facts\/)/;

const all = repositoryFiles();
const files = all.filter((file) => TEXT.test(file) && !DATA.test(file));

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

/** Pages for maintainers, which name files by their path or by its end, and names of the code. */
const MAINTAINER_PAGES = ['CONTRIBUTING.md', ...files.filter((file) => /^docs\/contributing\//.test(file))];
const isFile = (given: string) => all.some((file) => file === given || file.endsWith(`/${given}`));
const isFolder = (given: string) => all.some((file) => `/${file}`.includes(`/${given.replace(/\/$/, '')}/`));

test('every file, folder and script in backquotes on a page for maintainers exists', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const leads = (word: string) => {
    const [, script] = /^npm run (?:-s )?([\w:.-]*\w)/.exec(word) ?? [];
    if (script !== undefined) return script in scripts;
    if (!/^[\w.-]+(\/[\w.-]+)*\/?$/.test(word)) return true;
    if (/\.(ts|mts|mjs|py|md|sh)$/.test(word)) return isFile(word);
    return (
      !/^(\.ci|bench|containers|docs|lib|runs|schema|scripts|test|tools)\//.test(word) || isFolder(word) || isFile(word)
    );
  };
  expect(dangling(/`([^`\n]+)`/g, (word, file) => !MAINTAINER_PAGES.includes(file) || leads(word))).toEqual([]);
});

test('every name of the code in backquotes on a page for maintainers is in the code', () => {
  const code = all
    .filter((file) => /^(lib|containers|test|tools|scripts)\/.*\.(ts|mts|py)$/.test(file))
    .map((file) => readFileSync(path.join(ROOT, file), 'utf8'))
    .join('\n');
  const names = new Set(code.match(/\w+/g));
  // A name with a capital inside or an underscore: other words in backquotes may be values or commands.
  const isName = (word: string) => /^\w+$/.test(word) && /[a-z][A-Z]|_/.test(word);
  const leads = (word: string, file: string) => !MAINTAINER_PAGES.includes(file) || !isName(word) || names.has(word);
  expect(dangling(/`([^`\n]+)`/g, leads)).toEqual([]);
});
