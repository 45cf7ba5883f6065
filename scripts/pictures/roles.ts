import { color } from '../../lib/report/page/style';
import { type Picture, text, WIDTH } from './canvas';

const COLUMNS = ['Platform team', 'Researcher', 'Job', 'Auditor'];
const ROWS: readonly (readonly [what: string, ...cells: string[]])[] = [
  ['Change the environment', 'cdk deploy', '–', '–', '–'],
  ['Launch, stop, resume', 'every team', 'own team', '–', '–'],
  ['Create jobs, pass roles', '–', '–', '–', '–'],
  ['See runs and their logs', 'every team', 'own team', '–', 'every team'],
  ['Read data', 'all', 'shared + team', 'shared + team', 'names only'],
  ['Read checkpoints', 'all', 'own team', 'own team', 'names only'],
  ['Write data', 'all', 'own team', 'own team', '–'],
];
const FIRST = 198;
const COLUMN = (WIDTH - FIRST - 10) / COLUMNS.length;
const ROW = 40;
const TOP = 56;

const middle = (column: number): number => FIRST + (column + 0.5) * COLUMN;

const row = ([what, ...cells]: readonly string[], i: number): string => {
  const top = TOP + i * ROW;
  const y = top + 25;
  const shown = cells.map((cell, column) => {
    const tint = cell === '–' ? 'muted' : 'good';
    const ground = `<rect x="${middle(column) - COLUMN / 2 + 3}" y="${top + 4}" width="${COLUMN - 6}" height="${ROW - 8}" rx="5" fill="${color(tint)}" fill-opacity="${cell === '–' ? 0.05 : 0.16}"/>`;
    return ground + text({ x: middle(column), y }, cell, { anchor: 'middle', within: COLUMN - 8 });
  });
  return text({ x: 16, y }, what ?? '', { within: FIRST - 18 }) + shown.join('');
};

export const ROLES: Picture = {
  name: 'roles',
  title: 'Who may do what',
  description: `${ROWS.map(([what, ...cells]) => `${what}: ${cells.map((cell, i) => `${COLUMNS[i]} ${cell === '–' ? 'no' : cell}`).join(', ')}`).join('. ')}. Only the function reconcile creates jobs and passes roles, and no person may invoke it.`,
  height: TOP + ROWS.length * ROW + 66,
  parts: [
    ...COLUMNS.map((name, i) => text({ x: middle(i), y: 38 }, name, { anchor: 'middle', bold: true, within: COLUMN })),
    ...ROWS.map(row),
    text(
      { x: 16, y: TOP + ROWS.length * ROW + 28 },
      'Only the function reconcile creates jobs and passes roles. No person may invoke it.',
    ),
    text(
      { x: 16, y: TOP + ROWS.length * ROW + 48 },
      'A pipeline in access.ci may only read settings and run the checks before a launch.',
      { tint: 'muted' },
    ),
  ],
};
