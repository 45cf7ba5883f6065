// What the installation of the Pythons of tests takes over from pip's settings.
import path from 'node:path';
import { expect, test } from 'vitest';

/** As `pip config list` prints it: sorted by name, so that variables come before files, which are weaker. */
const LISTING = [
  ":env:.default-timeout='180'",
  ":env:.index-url='https://variable.example/simple'",
  "download.index-url='https://download.example/simple'",
  "global.find-links='/wheels\\n/more'",
  "global.index-url='https://file.example/simple'",
  "install.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'",
  "wheel.find-links='/elsewhere'",
].join('\n');

test('variables of pip are stronger than its files, and other commands have their own settings', async () => {
  const { indexesForUv } = await import(path.resolve('scripts/python-env.mjs'));
  expect(indexesForUv(LISTING)).toEqual({
    UV_DEFAULT_INDEX: 'https://variable.example/simple',
    UV_INDEX: 'https://a.example/simple https://b.example/simple',
    UV_FIND_LINKS: '/wheels,/more',
  });
});
