import { color } from '../../lib/report/page/style';
import { arrow, lines, type Picture, text } from './canvas';

const LEFT = 66;
const BOTTOM = 268;
/** The steps are those of the recording in the quick start. */
const PER_STEP = 5.2;
const PER_SECOND = 11;
const STEPS = { saved: [10, 20, 30, 40], lost: 26, all: 40 };
const FIRST_START = 6;
const STEP_SECONDS = 0.55;
const LOST_AT = FIRST_START + STEPS.lost * STEP_SECONDS;
const SECOND_START = LOST_AT + 17;

const x = (seconds: number): number => Math.round(LEFT + seconds * PER_SECOND);
const y = (step: number): number => Math.round(BOTTOM - step * PER_STEP);
const secondsOf = (step: number): number =>
  step <= 20 ? FIRST_START + step * STEP_SECONDS : SECOND_START + (step - 20) * STEP_SECONDS;
const END = secondsOf(STEPS.all);

const line = (points: string, tint: 'c1' | 'c3' | 'bad', dashes = ''): string =>
  `<polyline points="${points}" fill="none" stroke="${color(tint)}" stroke-width="3"${dashes}/>`;

const band = (from: number, to: number, tint: 'bad' | 'wait'): string =>
  `<rect x="${x(from)}" y="44" width="${x(to) - x(from)}" height="${BOTTOM - 44}" fill="${color(tint)}" fill-opacity="0.16"/>`;

const saved = (step: number): string =>
  [
    `<circle cx="${x(secondsOf(step))}" cy="${y(step)}" r="6" fill="${color('c4')}"/>`,
    text({ x: x(secondsOf(step)) - 12, y: y(step) - 6 }, String(step), { anchor: 'end', bold: true }),
  ].join('');

const axis = [
  arrow(`${LEFT},${BOTTOM} ${LEFT},40`),
  arrow(`${LEFT},${BOTTOM} 668,${BOTTOM}`),
  text({ x: LEFT - 10, y: 60 }, 'step', { anchor: 'end' }),
  text({ x: 668, y: BOTTOM + 20 }, 'time', { anchor: 'end' }),
];

const attempts = [
  line(`${x(FIRST_START)},${y(0)} ${x(secondsOf(20))},${y(20)}`, 'c1'),
  line(`${x(secondsOf(20))},${y(20)} ${x(LOST_AT)},${y(STEPS.lost)}`, 'bad'),
  line(`${x(LOST_AT)},${y(20)} ${x(SECOND_START)},${y(20)}`, 'c1', ' stroke-dasharray="3 5"'),
  line(`${x(SECOND_START)},${y(20)} ${x(END)},${y(STEPS.all)}`, 'c3'),
];

const words = [
  lines({ x: x(secondsOf(20)) - 10, y: 60 }, ['host lost', 'after step 26'], { anchor: 'end', tint: 'bad' }),
  lines({ x: x(LOST_AT) + 12, y: 60 }, ['wait, start,', 'load checkpoint'], { tint: 'muted' }),
  lines({ x: x(SECOND_START) + 14, y: y(20) + 8 }, ['attempt 2 continues', 'with step 21'], { tint: 'good' }),
  text({ x: x(FIRST_START) + 40, y: BOTTOM - 14 }, 'attempt 1'),
  lines({ x: LEFT, y: BOTTOM + 24 }, ['●  checkpoint that is complete in S3'], {}),
  text({ x: LEFT, y: BOTTOM + 44 }, 'Steps 21 to 26 were lost with the host: attempt 2 trains them again.', {
    tint: 'bad',
  }),
];

export const RESUME: Picture = {
  name: 'resume',
  title: 'A resume on a time line',
  description:
    'Attempt 1 saves checkpoints at steps 10 and 20 and loses its host after step 26. After waiting, starting and loading, attempt 2 continues from the checkpoint of step 20 with step 21, saves at 30 and 40, and completes. Steps 21 to 26 are trained twice.',
  height: 330,
  parts: [
    band(secondsOf(20), LOST_AT, 'bad'),
    band(LOST_AT, SECOND_START, 'wait'),
    ...axis,
    ...attempts,
    ...STEPS.saved.map(saved),
    ...words,
  ],
};
