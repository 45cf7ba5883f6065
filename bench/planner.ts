import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { predictRow, type Row } from './planner-rows';
import { accuracyTable } from './planner-table';

/**
 * `bench:planner -- --rows FILE --out FILE` answers each row of FILE with one JSON object a line.
 * Without `--rows` it scores the measured rows in `--bench DIR` (or SLIPWAY_BENCH_ROWS) and prints the accuracy table;
 * `--docs FILE` also writes the table between the markers of that page.
 */
const { values } = parseArgs({
  options: { rows: { type: 'string' }, out: { type: 'string' }, bench: { type: 'string' }, docs: { type: 'string' } },
});

const readRows = (file: string): Row[] => JSON.parse(readFileSync(file, 'utf8')).rows;

function answerRows(rowsFile: string, outFile: string | undefined): void {
  const lines = readRows(rowsFile).map((row) => JSON.stringify(predictRow(row)));
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

function scoreShared(): number {
  const folder = values.bench ?? process.env.SLIPWAY_BENCH_ROWS ?? path.join(__dirname, '..', '..', 'shared', 'bench');
  const files = ['published-runs.json', 'published-runs-noncommercial.json'].map((f) => path.join(folder, f));
  const there = files.filter((f) => existsSync(f));
  if (there.length === 0) {
    console.error(
      `--bench: must name the folder of published-runs.json, got ${folder} without one; nothing was scored`,
    );
    return 2;
  }
  const table = accuracyTable(there.flatMap(readRows));
  console.log(table);
  if (values.docs) writeDocs(values.docs, table);
  return 0;
}

if (values.rows) answerRows(values.rows, values.out);
else process.exitCode = scoreShared();
