// Measures of the code, beside those of version 0.1.0: `npm run measures` for a table, with `-- --json` for one JSON document, with
// `-- --list` also what is over a limit, place by place.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { textTable } from '../../lib/spec/formats/text-table';
import {
  crowdedFolders,
  documented,
  functionsOfManyParameters,
  importCycles,
  LONGEST_FUNCTION,
  longFunctions,
  MOST_FILES,
  MOST_PARAMETERS,
  measureFolder,
  quantile,
} from './house';
import { type MeasuredFile, ROOT } from './source';

interface PythonMeasures {
  lengths: number[];
  public: number;
  documented: number;
}

/** One row: what is measured, in version 0.1.0 (commit 84c2e5e), now. */
type Row = readonly [what: string, before: string, now: string];

const three = (values: readonly number[], middle = 0.9): string =>
  `${quantile(values, 0.5)} / ${quantile(values, middle)} / ${Math.max(0, ...values)}`;
const share = (of: { all: number; documented: number }): string =>
  of.all === 0 ? '-' : `${Math.round((100 * of.documented) / of.all)} %`;
const within = (files: readonly MeasuredFile[], folder: string): MeasuredFile[] =>
  files.filter(({ file }) => file.startsWith(`${folder}/`));

function typescriptRows(files: readonly MeasuredFile[]): Row[] {
  const lines = files.map((one) => one.lines);
  const all = lines.reduce((sum, count) => sum + count, 0);
  const comments = files.reduce((sum, one) => sum + one.commentLines, 0);
  const crowded = [...crowdedFolders(files)].sort(([, a], [, b]) => b - a);
  return [
    ['lib: files', '426', String(files.length)],
    ['lib: lines', '35,600', all.toLocaleString('en-US')],
    ['lib: lines of a file, p50 / p95 / max', '67 / 208 / 1146', three(lines, 0.95)],
    [
      'lib: lines of a function, p50 / p90 / max',
      '7 / 20 / 85',
      three(files.flatMap((one) => one.functions.map((found) => found.lines))),
    ],
    [`lib: functions over ${LONGEST_FUNCTION} lines`, '19', String(longFunctions(files).length)],
    [`lib: functions of more than ${MOST_PARAMETERS} parameters`, '', String(functionsOfManyParameters(files).length)],
    ['lib: groups of files that import each other', '9', String(importCycles(files).length)],
    [
      `lib: folders of more than ${MOST_FILES} files`,
      'cli 42, distribution 37, constructs 34, rules 34',
      crowded.map(([folder, count]) => `${folder.slice('lib/'.length)} ${count}`).join(', '),
    ],
    ['lib: exports with a documentation comment', '72 %', share(documented(files))],
    ['lib/contracts: the same', '38 %', share(documented(within(files, 'lib/contracts')))],
    ['lib/rules: the same', '60 %', share(documented(within(files, 'lib/rules')))],
    ['lib: comment lines', '8 %', `${Math.round((100 * comments) / all)} %`],
  ];
}

function pythonRows(): Row[] {
  const folders = { driver: 'containers/driver', trainer: 'containers/trainer' };
  const script = path.join(__dirname, 'python.py');
  const text = execFileSync('python3', [script, ...Object.values(folders)], { cwd: ROOT, encoding: 'utf8' });
  const found = JSON.parse(text) as Record<string, PythonMeasures>;
  const before = { driver: ['5 / 17 / 51', '191 of 256'], trainer: ['6 / 17 / 52', '167 of 301'] } as const;
  return (['driver', 'trainer'] as const).flatMap((name): Row[] => {
    const measured = found[folders[name]];
    if (!measured) return [];
    return [
      [`${name}: lines of a function, p50 / p90 / max`, before[name][0], three(measured.lengths)],
      [`${name}: public definitions with a docstring`, before[name][1], `${measured.documented} of ${measured.public}`],
    ];
  });
}

/** What is over a limit, a line each. */
function overLimits(files: readonly MeasuredFile[]): string[] {
  return [
    ...longFunctions(files).map(({ file, line, name, lines }) => `${file}:${line} ${name}: ${lines} lines`),
    ...functionsOfManyParameters(files).map((f) => `${f.file}:${f.line} ${f.name}: ${f.parameters} parameters`),
    ...[...crowdedFolders(files)].map(([folder, count]) => `${folder}: ${count} files`),
    ...importCycles(files).map((group) => `import each other: ${group.join(', ')}`),
  ];
}

const files = measureFolder('lib');
const rows = [...typescriptRows(files), ...pythonRows()];
if (process.argv.includes('--json'))
  process.stdout.write(
    `${JSON.stringify(
      rows.map(([what, before, now]) => ({ what, before, now })),
      null,
      2,
    )}\n`,
  );
else process.stdout.write(`${textTable(['measure', '0.1.0', 'now'], rows)}\n`);
if (process.argv.includes('--list')) process.stdout.write(`\n${overLimits(files).join('\n')}\n`);
