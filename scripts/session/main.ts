// `npm run docs:session`: plays docs/guides/stranger.md and the notebook of the Python client on the embedded AWS, and writes what a terminal
// shows into the page, and what a notebook shows into it.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { playSession, type Shell } from './play';

const PAGE = path.join(__dirname, '../../docs/guides/stranger.md');
const MARKS = ['<!-- generated: session -->', '<!-- end: session -->'] as const;

const ROOT = path.join(__dirname, '../..');

/** The notebook keeps what its cells show. */
async function playNotebook(shell: Shell): Promise<void> {
  const words = `${ROOT}/scripts/session/run_notebook.py --write ${ROOT}/clients/python/examples/notebook.ipynb`;
  const python = `PYTHONPATH=${ROOT}/clients/python/src ${ROOT}/.slipway/python/bin/python`;
  const { code, output } = await shell.run(`${python} ${words}`);
  if (code !== 0) throw new Error(`docs:session: notebook.ipynb must run, got: ${output}`);
}

async function main(): Promise<void> {
  const played = await playSession(playNotebook);
  const text = played.map(({ command, output }) => `$ ${command}\n${output.trimEnd()}`.trimEnd()).join('\n\n');
  const page = readFileSync(PAGE, 'utf8');
  const [from, to] = [page.indexOf(MARKS[0]) + MARKS[0].length, page.indexOf(MARKS[1])];
  if (from < MARKS[0].length || to < from) throw new Error(`${PAGE}: must have ${MARKS.join(' and ')}, got none`);
  writeFileSync(PAGE, `${page.slice(0, from)}\n\`\`\`text\n${text}\n\`\`\`\n${page.slice(to)}`);
  const failed = played.filter(({ code }) => code !== 0);
  for (const { command, code } of failed)
    process.stderr.write(`docs:session: ${command}: must exit with 0, got ${code}\n`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
