// Pages find each other: each is in the sidebar of the site, each link to a heading leads to one, and what a package leaves out is named.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Item, internals, sidebar } from '../../docs/.vitepress/sidebar.mjs';
import { pages, textOf } from '../support/pages';
import { ROOT } from '../support/repository-files';

const linksOf = (items: readonly Item[]): string[] =>
  items.flatMap(({ link, items: below = [] }) => [...(link ? [link] : []), ...linksOf(below)]);

/** Where the site has a page of docs/. */
const addressOf = (page: string) => `/${page.replace(/^docs\//, '').replace(/(README|index)?\.md$/, '')}`;

test('the sidebars name every page once, and lead to each other', () => {
  const expected = pages().filter((page) => page.startsWith('docs/'));
  const links = [...linksOf(sidebar()), ...linksOf(internals())];
  expect(links.sort()).toEqual([...expected.map(addressOf), '/architecture'].sort());
});

/** The anchor that VitePress gives a heading (@mdit-vue/shared, slugify). */
const slug = (heading: string): string =>
  heading
    .replaceAll(/[`*]/g, '')
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]/g, '')
    .replaceAll(/[\s~!@#$%^&*()\-_+=[\]{}|\\;:"'“”‘’<>,.?/]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .replace(/^(\d)/, '_$1')
    .toLowerCase();

/** The anchors of a page. */
function anchorsOf(page: string): Set<string> {
  const text = textOf(page).replaceAll(/^ *```[\s\S]*?^ *```/gm, '');
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map((match) => slug(match[1] ?? ''));
  const named = [...text.matchAll(/<a id="([^"]+)">/g)].map((match) => match[1] ?? '');
  return new Set([...headings, ...named]);
}

test('every link to a heading leads to one', () => {
  const dangling = pages().flatMap((page) =>
    [...textOf(page).matchAll(/\]\((?!https?:)([^)\s#]*)#([^)\s]+)\)/g)].flatMap(([, file = '', anchor = '']) => {
      const target = file === '' ? page : path.join(path.dirname(page), file);
      return !target.endsWith('.md') || anchorsOf(target).has(anchor) ? [] : [`${page}: ${file}#${anchor}`];
    }),
  );
  expect(dangling).toEqual([]);
});

/** Whether `files` of package.json names a file, or a folder that it is in. */
const isNamed = (file: string, pattern: string): boolean =>
  new RegExp(`^${pattern.replaceAll('.', String.raw`\.`).replaceAll('*', '[^/]*')}(/|$)`).test(file);
const { files } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
const isPacked = (file: string): boolean =>
  files.some((pattern) => isNamed(file, pattern)) &&
  !files.some((pattern) => pattern.startsWith('!') && isNamed(file, pattern.slice(1)));

test('the README names what pages of the package link to and the package leaves out, and nothing else', () => {
  const [, sentence = ''] = /The npm package leaves files out([\s\S]*?)\n\n/.exec(textOf('README.md')) ?? [];
  const named = [...sentence.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const missing = pages()
    .filter(isPacked)
    .flatMap((page) =>
      [...textOf(page).matchAll(/\]\((?![a-z]+:|#)([^)\s#]+)/g)].map(([, link = '']) =>
        path.join(path.dirname(page), link),
      ),
    )
    .filter((file) => existsSync(path.join(ROOT, file)) && !isPacked(file.replace(/\/$/, '')));
  expect(missing.filter((file) => !named.some((name) => isNamed(file, name)))).toEqual([]);
  expect(named.filter((name) => !missing.some((file) => isNamed(file, name)))).toEqual([]);
  expect(missing).toContain('docs/architecture.md');
});
