// The session of docs/guides/stranger.md, played as it is printed there, on an embedded AWS of its own.
import { beforeAll, expect, test } from 'vitest';
import { type Played, playSession } from '../../scripts/session/play';
import { textOf } from '../support/pages';

let played: Played[];
beforeAll(async () => {
  played = await playSession();
});

const outputOf = (words: RegExp) => played.find(({ command }) => words.test(command))?.output ?? '';

test('every command of the session does what it was typed for, and the page shows the same commands', () => {
  expect(played.filter(({ code }) => code !== 0)).toEqual([]);
  const page = textOf('docs/guides/stranger.md');
  // Ids of runs have the time of their launch in them.
  const plain = (text: string) => text.replaceAll(/descent-\d{12}/g, 'RUN');
  for (const { command } of played) expect(plain(page)).toContain(`$ ${plain(command)}\n`);
});

test('the sweep stops the slowest learning rate early and finishes the others', () => {
  const sweep = outputOf(/^slipway launch/);
  expect(sweep).toMatch(/^descent-\d{12} +completed +60 .* code\.arguments\.lr=0\.6$/m);
  expect(sweep).toMatch(/^descent-\d{12} +stopped .* code\.arguments\.lr=0\.02$/m);
});

test('the best run is reported, and its lineage names code, driver and image', () => {
  expect(outputOf(/--diff$/)).toMatch(/^code\.arguments\.lr +0\.02 +0\.6$/m);
  const lineage = outputOf(/--lineage$/);
  expect(lineage).toMatch(/^code +\.\/src {2}[0-9a-f]{64}$/m);
  expect(lineage).toMatch(/^image +dlc 2\.8\.0$/m);
});
