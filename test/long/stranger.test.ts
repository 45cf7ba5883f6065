// The session of docs/guides/stranger.md, played as it is printed there, on an embedded AWS of its own.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Played, playSession } from '../../scripts/session/play';
import { drawnByScript } from '../support/drawn-by-script';
import { textOf } from '../support/pages';
import { PYTHON } from '../support/python';

const ROOT = path.join(__dirname, '../..');
const NAMES = ['results', 'difference', 'lineage'];

let played: Played[];
let notebook: { output: string; code: number | null };
let page: string;
beforeAll(async () => {
  played = await playSession(async (shell) => {
    const run = `${ROOT}/scripts/session/run_notebook.py ${ROOT}/clients/python/examples/sweep.ipynb ${NAMES.join(' ')}`;
    notebook = await shell.run(
      `PYTHONPATH=${ROOT}/clients/python/src ${PYTHON} ${run} 2> notebook.log || cat notebook.log`,
    );
    page = readFileSync(path.join(shell.folder, 'sweep-report.html'), 'utf8');
  });
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

test('the notebook does the same from Python: losers are stopped, the best run is compared, reported and traced', () => {
  const { results, difference, lineage, shown } = JSON.parse(notebook.output);
  const rows = results.map(({ label, state, stoppedEarly }: Record<string, unknown>) => [label, state, stoppedEarly]);
  expect(rows[0]).toEqual(['code.arguments.lr=0.6', 'completed', false]);
  expect(rows.at(-1)).toEqual(['code.arguments.lr=0.02', 'stopped', true]);
  expect(results[0].loss).toBeLessThan(results.at(-1).loss);
  expect(difference.options).toEqual([{ path: 'code.arguments.lr', values: [0.6, 0.02] }]);
  expect(difference.lossAtSteps.length).toBeGreaterThan(5);
  expect(shown[2]).toContain('<td>code.arguments.lr=0.6</td>');
  expect(lineage.runs[0].code).toEqual({ source: './src', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(drawnByScript(page)).toContain('<title>descent-');
});
