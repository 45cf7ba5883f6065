import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { svgOf, text } from '../../scripts/pictures/canvas';
import { pictures } from '../../scripts/pictures/pictures';
import { pages, textOf } from '../support/pages';
import { ROOT } from '../support/repository-files';

const SMALLEST_TYPE = 13;
const drawn = pictures();

test('the pictures are what npm run docs:pictures draws', async () => {
  const committed = (await drawn).map(([file]) => [file, readFileSync(path.join(ROOT, 'docs/images', file), 'utf8')]);
  expect(committed).toEqual(await drawn);
});

test('each picture is shown on a page', async () => {
  const shown = pages().map(textOf).join('\n');
  expect((await drawn).filter(([file]) => !shown.includes(`images/${file})`)).map(([file]) => file)).toEqual([]);
});

test('each picture has a title, a description, and no type that is too small to read', async () => {
  for (const [file, content] of await drawn) {
    const sizes = [...content.matchAll(/font-size="(\d+)"/g)].map(([, size]) => Number(size));
    expect(content, file).toMatch(/<title id="title">.{5,}<\/title>\n<desc id="desc">.{40,}<\/desc>/);
    expect(Math.min(...sizes), file).toBeGreaterThanOrEqual(SMALLEST_TYPE);
  }
});

test('fails: text that is wider than its room', () => {
  expect(() => text({ x: 600, y: 10 }, 'a sentence that leaves the picture')).toThrow(/needs 2\d\d px, and has 80$/);
});

test('text of a plan is no markup', () => {
  const svg = svgOf({ name: 'a', title: '<a> & b', description: '', height: 9, parts: [text({ x: 0, y: 0 }, '<b>')] });
  expect(svg).toContain('<title id="title">&lt;a&gt; &amp; b</title>');
  expect(svg).toContain('>&lt;b&gt;</text>');
});
