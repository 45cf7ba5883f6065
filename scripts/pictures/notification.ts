import { color } from '../../lib/report/page/style';
import { mark, type Picture, text, WIDTH } from './canvas';
import type { Simulated } from './simulated';

const LEFT = 24;
const MOST = 82;
/** Of the subject, which is bold. */
const MAX_BOLD = 70;
const LINE = 22;
/** What a reader looks for in a mail, and how its line begins. */
const MARKS: readonly (readonly [start: string, what: string])[] = [
  ['Slipway:', 'run and event'],
  ['cost so far', 'cost'],
  ['state ', 'what happens next'],
  ['slipway status', 'commands that run as printed'],
  ['job:', 'links to the job and the runbook'],
];

/** The mail about a run that failed, as it is published. */
export function notification({ mail }: Simulated): Picture {
  const subject = wrapped(mail.subject, MAX_BOLD);
  const lines = [...subject, '', ...mail.message.split('\n').flatMap((line) => wrapped(line, MOST))];
  const found = MARKS.map(([start]) => lines.findIndex((line) => line.startsWith(start)));
  const bottom = 40 + lines.length * LINE;
  return {
    name: 'notification',
    title: 'A notice by e-mail about a run that failed',
    description: `Subject: ${mail.subject} Text: ${mail.message.split('\n').filter(Boolean).join('. ')}`,
    height: bottom + 24 * MARKS.length + 14,
    parts: [
      `<rect x="10" y="10" width="${WIDTH - 20}" height="${bottom - 16}" rx="6" fill="${color('page')}" stroke="${color('rule')}"/>`,
      ...lines.map((line, i) => text({ x: LEFT + 24, y: 36 + i * LINE }, line, { bold: i < subject.length })),
      ...found.map((at, i) => mark({ x: LEFT + 4, y: 31 + at * LINE }, i + 1)),
      ...MARKS.flatMap(([, what], i) => [
        mark({ x: LEFT + 4, y: bottom + 20 + i * 24 }, i + 1),
        text({ x: LEFT + 24, y: bottom + 25 + i * 24 }, what),
      ]),
    ],
  };
}

/** A line in parts of at most `most` characters, as a mail program breaks it. */
function wrapped(line: string, most: number): string[] {
  const parts = [''];
  for (const word of line.split(' ')) {
    const longer = parts.at(-1) ? `${parts.at(-1)} ${word}` : word;
    if (longer.length <= most) parts[parts.length - 1] = longer;
    else parts.push(word);
  }
  return parts.flatMap((part) => part.match(new RegExp(`.{1,${most}}`, 'g')) ?? ['']);
}
