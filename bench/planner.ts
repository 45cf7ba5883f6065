import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { command, readOptions } from './command-line';
import { readRows, rowsFolder } from './planner-row-files';
import { predictRow } from './planner-rows';
import { accuracyTable } from './planner-table';

const USAGE = `npm run -s bench:planner -- --rows FILE [--out FILE]   answers each row of FILE with one JSON object a line
npm run -s bench:planner -- [--bench DIR] [--docs FILE]
  scores the measured rows in DIR (or SLIPWAY_BENCH_ROWS) and prints the accuracy table; --docs also writes it between the
  markers of that page`;

function answerRows(rowsFile: string, outFile: string | undefined): void {
  const lines = readRows(rowsFile, '--rows').map((row) => JSON.stringify(predictRow(row)));
  const text = `${lines.join('\n')}\n`;
  if (outFile) writeFileSync(outFile, text);
  else process.stdout.write(text);
}

const BEGIN = '<!-- accuracy: written by npm run bench:planner -- --docs docs/planner.md -->';
const END = '<!-- /accuracy -->';

function writeDocs(file: string, table: string): void {
  const page = readFileSync(file, 'utf8');
  const [before] = page.split(BEGIN);
  const after = page.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${file}: must hold the two accuracy markers`);
  writeFileSync(file, `${before}${BEGIN}\n\n${table}\n${END}${after}`);
}

function scoreShared(bench: string | undefined, docs: string | undefined): number {
  const folder = rowsFolder(bench);
  const files = ['published-runs.json', 'published-runs-noncommercial.json'].map((f) => path.join(folder, f));
  const there = files.filter((f) => existsSync(f));
  if (there.length === 0) {
    console.error(
      `--bench: must name the folder of published-runs.json, got ${folder} without one; nothing was scored`,
    );
    return 2;
  }
  const table = accuracyTable(there.flatMap((file) => readRows(file, '--bench')));
  console.log(table);
  if (docs) writeDocs(docs, table);
  return 0;
}

command(() => {
  const { rows, out, bench, docs } = readOptions(USAGE, {
    rows: { type: 'string' },
    out: { type: 'string' },
    bench: { type: 'string' },
    docs: { type: 'string' },
  });
  if (!rows) return scoreShared(bench, docs);
  answerRows(rows, out);
  return 0;
});
