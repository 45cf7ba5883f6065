import type { ColorName } from '../../lib/report/page/style';
import { arrow, boundary, box, lines, type Picture, text } from './canvas';

const WIDE = 116;
const STEP = 134;
const HIGH = 72;

const state = (column: number, y: number, tint: ColorName, words: readonly string[]): string =>
  box({ x: 14 + column * STEP, y, width: WIDE, height: HIGH }, tint, words);

const BEFORE = [
  boundary({ x: 6, y: 10, width: 400, height: 110 }, 'muted', 'Before anything costs money'),
  state(0, 38, 'c8', ['validate', 'fields, rules']),
  state(1, 38, 'c8', ['plan', 'memory, price']),
  state(2, 38, 'c8', ['launch', 'control checks', 'all of it again']),
  arrow('130,74 146,74'),
  arrow('264,74 280,74'),
  arrow('340,110 340,138 72,138 72,184'),
];

const STATES = [
  state(0, 186, 'c5', ['queued', 'waits for room']),
  state(1, 186, 'c1', ['submitting', 'job is created']),
  state(2, 186, 'c1', ['pending', 'hosts start']),
  state(3, 186, 'c3', ['running', 'steps arrive']),
  state(4, 186, 'good', ['completed', 'exit code 0']),
  state(0, 342, 'c8', ['stopped', 'job has ended']),
  state(2, 342, 'bad', ['failed', 'first error', 'in the report']),
  state(3, 342, 'c2', ['resuming', 'next attempt']),
];

const MOVES = [
  ...[130, 264, 398, 532].map((x) => arrow(`${x},222 ${x + 16},222`)),
  arrow('352,186 352,164 100,164 100,184', 'c5'),
  text({ x: 364, y: 168 }, 'no capacity: back to the queue', { tint: 'muted' }),
  arrow('452,258 452,340', 'c2'),
  arrow('490,342 490,260', 'c3'),
  lines({ x: 442, y: 294 }, ['crash, hang,', 'lost host'], { anchor: 'end', tint: 'muted' }),
  lines({ x: 500, y: 294 }, ['continues after the', 'newest checkpoint'], { tint: 'muted' }),
  arrow('416,378 400,378', 'bad'),
  arrow('206,258 206,362 280,362', 'bad'),
  lines({ x: 214, y: 294 }, ['rejected', 'for good'], { tint: 'muted' }),
  arrow('48,342 48,260', 'c5'),
  lines({ x: 58, y: 294 }, ['slipway', 'resume'], { tint: 'muted' }),
  lines(
    { x: 14, y: 446 },
    [
      'slipway stop: any state → stopping → stopped. The job has 100 s to save a checkpoint.',
      'resuming → failed: the budget of the failure class is spent, or nothing new was saved.',
      'After a spot interruption, a run is resuming: SageMaker restarts the same job.',
    ],
    { tint: 'muted' },
  ),
];

export const RUN_STATES: Picture = {
  name: 'run-states',
  title: 'Life of a run',
  description:
    'A run file is validated, planned and launched. The run is queued until there is room, then submitting, pending while hosts start, running, and completed. After a crash, a hang or a lost host it is resuming and continues after the newest checkpoint, until the budget of the failure class is spent: then it failed. When the service refuses its create call because a quota is used up, it returns to the queue. A stopped run can be resumed.',
  height: 496,
  parts: [...BEFORE, ...STATES, ...MOVES],
};
