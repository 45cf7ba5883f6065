import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { descriptionOf } from '../../docs/.vitepress/description.mjs';
import { pages, textOf } from '../support/pages';
import { ROOT } from '../support/repository-files';

test.each([
  ['# A\n\nFirst *line*\nof [text](page.md).\n\nSecond.', 'First line of text.'],
  ['# A\n\n| a | b |\n|---|---|\n\nAfter `the` table:\n', 'After the table.'],
  ['# A\n\n<!-- generated -->\n```bash\nrun\n\nit\n```\n\n![a picture](x.svg)\n\nText.', 'Text.'],
  ['# A\nDirectly below.', 'Directly below.'],
  ['<!--@include: ../CHANGELOG.md-->', 'Slipway: Title'],
])('describes %j', (markdown, description) => {
  expect(descriptionOf(markdown, 'Title')).toBe(description);
});

test('a long paragraph ends after a word', () => {
  expect(descriptionOf(`# A\n\n${'word '.repeat(60)}`, 'A')).toBe(`${'word '.repeat(40).trim()} …`);
});

test('every page of the site has a description of its own', () => {
  const descriptions = pages()
    .filter((page) => page.startsWith('docs/'))
    .map((page) => descriptionOf(textOf(page), page));
  const twice = descriptions.filter((description, i) => descriptions.indexOf(description) !== i);
  expect(twice).toEqual([]);
  expect(descriptions.filter((description) => description.length < 10 || description.length > 202)).toEqual([]);
});

/** Loaded as VitePress does: the checker of types has another resolution of modules than the site. */
const CONFIG = '../../docs/.vitepress/config.mts';

test('a page of the site says its description and shows the icon', async () => {
  const { default: config } = await import(CONFIG);
  const home = readFileSync(path.join(ROOT, 'docs/index.md'), 'utf8');
  expect(config.transformPageData({ filePath: 'index.md', title: 'Slipway' })).toEqual({
    description: descriptionOf(home, 'Slipway'),
  });
  expect(JSON.stringify(config.head)).toMatch(/"rel":"icon".*data:image\/svg\+xml/);
});
