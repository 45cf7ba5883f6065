import { color } from '../../lib/report/page/style';
import { arrow, type Picture, text, WIDTH } from './canvas';
import type { Lane, Simulated } from './simulated';

const LEFT = 104;
const RIGHT = WIDTH - 16;
const TOP = 62;
const HIGH = 112;
const LANES = TOP + HIGH + 58;
const ROW = 25;
const TINTS = ['c1', 'c2'] as const;
const FEW_SECONDS = 60;

type Tint = (typeof TINTS)[number];

/** Two teams, one quota: the instances of each over time, and the runs that wait and train. */
export function queuePicture({ hours, quota, shares, lanes }: Simulated): Picture {
  const teams = [...shares.keys()];
  const all = [...shares.values()].reduce((sum, share) => sum + share, 0);
  const tintOf = (team: string): Tint => TINTS[teams.indexOf(team)] ?? 'c1';
  const x = (seconds: number): number => LEFT + ((RIGHT - LEFT) * seconds) / (hours * 3600);
  const y = (instances: number): number => TOP + HIGH - (HIGH * instances) / quota;
  const rect = (from: number, to: number, area: { top: number; high: number }, fill: string): string =>
    `<rect x="${x(from).toFixed(1)}" y="${area.top.toFixed(1)}" width="${(x(to) - x(from)).toFixed(1)}" height="${area.high.toFixed(1)}" fill="${fill}" shape-rendering="crispEdges"/>`;

  const held = (team: string, at: number): number =>
    lanes.filter((lane) => lane.team === team && trainsAt(lane, at)).reduce((sum, lane) => sum + lane.instances, 0);
  const times = [...new Set(lanes.flatMap(({ spans }) => spans.flatMap(({ from, to }) => [from, to])))].sort(
    (a, b) => a - b,
  );
  const areas = times.slice(0, -1).flatMap((from, i) => {
    const to = times[i + 1] ?? from;
    let below = 0;
    return teams.map((team) => {
      const count = held(team, (from + to) / 2);
      below += count;
      return count === 0 ? '' : rect(from, to, { top: y(below), high: y(0) - y(count) }, color(tintOf(team)));
    });
  });
  const first = teams[0] ?? '';
  const share = ((shares.get(first) ?? 0) / all) * quota;
  const bottom = LANES + lanes.length * ROW;
  const ticks = Array.from({ length: hours / 2 + 1 }, (_, i) => 2 * i);
  return {
    name: 'queue',
    title: `The queue of two teams with the shares ${[...shares].map(([team, one]) => `${team} ${one}`).join(' and ')}`,
    description: `${quota} instances for two teams, simulated. ${lanes.map((lane) => laneText(lane)).join('. ')}.`,
    height: bottom + 62,
    parts: [
      legend(teams.map((team) => ({ text: `${team}, share ${shares.get(team)}`, tint: tintOf(team) }))),
      ...areas,
      ...[0, quota].map((count) =>
        text({ x: LEFT - 8, y: y(count) + 5 }, String(count), { anchor: 'end', tint: 'muted' }),
      ),
      text({ x: 16, y: y(quota / 2) + 5 }, 'instances', { tint: 'muted' }),
      `<line x1="${LEFT}" x2="${RIGHT}" y1="${y(share)}" y2="${y(share)}" stroke="${color('ink')}" stroke-dasharray="5 4"/>`,
      text({ x: RIGHT, y: TOP - 8 }, `- - -  entitlement of ${first}`, { anchor: 'end', tint: 'muted' }),
      ...lanes.flatMap((lane, i) => laneParts(lane, LANES + i * ROW, { x, rect, tint: tintOf(lane.team) })),
      arrow(`${LEFT},${bottom + 4} ${RIGHT},${bottom + 4}`),
      ...ticks.map((hour) =>
        text({ x: Math.min(x(hour * 3600), RIGHT - 8), y: bottom + 22 }, String(hour), {
          anchor: 'middle',
          tint: 'muted',
        }),
      ),
      text({ x: LEFT, y: bottom + 46 }, 'hours. The number in a bar: instances of the run. Grey: in the queue.', {
        tint: 'muted',
      }),
    ],
  };
}

const legend = (entries: readonly { text: string; tint: Tint }[]): string =>
  entries
    .map(({ text: words, tint }, i) => {
      const at = 16 + i * 150;
      return `<rect x="${at}" y="18" width="14" height="14" fill="${color(tint)}"/>${text({ x: at + 20, y: 30 }, words, { bold: true })}`;
    })
    .join('');

const trainsAt = ({ spans }: Lane, at: number): boolean =>
  spans.some(({ from, to, kind }) => kind === 'training' && from <= at && at < to);

/** Spans of the same kind that follow each other as one, so that they are drawn without a seam. */
function joined(spans: Lane['spans']): Lane['spans'] {
  const all: Lane['spans'] = [];
  for (const span of spans) {
    const last = all.at(-1);
    if (last?.kind === span.kind && span.from - last.to < FEW_SECONDS) last.to = span.to;
    else all.push({ ...span });
  }
  return all;
}

function laneParts(
  { id, spans, instances, state }: Lane,
  top: number,
  {
    x,
    rect,
    tint,
  }: {
    x(at: number): number;
    rect(from: number, to: number, area: { top: number; high: number }, fill: string): string;
    tint: Tint;
  },
): string[] {
  const shown = joined(spans).filter(({ from, to }) => to - from > FEW_SECONDS);
  const bars = shown.map(({ from, to, kind }) =>
    rect(from, to, { top, high: 17 }, color(kind === 'training' ? tint : 'wait')),
  );
  const longest = shown.filter(({ kind }) => kind === 'training').sort((a, b) => b.to - b.from - (a.to - a.from))[0];
  const end = shown.at(-1)?.to ?? 0;
  return [
    text({ x: LEFT - 8, y: top + 13 }, id, { anchor: 'end' }),
    ...bars,
    longest
      ? `<text x="${((x(longest.from) + x(longest.to)) / 2).toFixed(1)}" y="${top + 13}" font-size="13" text-anchor="middle" fill="${color('card')}" font-weight="600">${instances}</text>`
      : '',
    state === 'failed' ? text({ x: x(end) + 6, y: top + 13 }, 'failed', { tint: 'bad' }) : '',
  ];
}

const laneText = ({ id, team, state, spans }: Lane): string => {
  const starts = spans.find(({ kind }) => kind === 'training');
  const waited = starts
    ? `waited ${((starts.from - (spans[0]?.from ?? 0)) / 3600).toFixed(1)} hours, then ${state}`
    : 'waits';
  return `${id} of ${team} ${waited}`;
};
