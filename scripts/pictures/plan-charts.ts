import type { RunPlan } from '../../lib/core/planner/run/plan-run';
import { number, percent, words } from '../../lib/report/page/format';
import { color, seriesColor } from '../../lib/report/page/style';
import { memoryName } from '../../lib/report/plan/sections';
import { type Picture, text, WIDTH } from './canvas';

const LEFT = 16;
const BAR = WIDTH - 2 * LEFT;
const ROW = 24;

interface Part {
  name: string;
  value: number;
}

const largestFirst = (parts: Readonly<Record<string, number>>, nameOf: (key: string) => string): Part[] =>
  Object.entries(parts)
    .filter(([, value]) => value > 0)
    .map(([key, value]) => ({ name: nameOf(key), value }))
    .sort((a, b) => b.value - a.value);

/** Memory of the GPU with the highest usage, by component. */
export function memoryBar(file: string, { memoryGiB }: RunPlan): Picture {
  const { total, available, ...components } = memoryGiB;
  const parts = largestFirst(components, memoryName);
  let from = LEFT;
  const segments = parts.map(({ value }, i) => {
    const width = (value / available) * BAR;
    from += width;
    return `<rect x="${(from - width).toFixed(1)}" y="48" width="${width.toFixed(1)}" height="44" fill="${seriesColor(i)}" stroke="${color('card')}"/>`;
  });
  const rows = parts.map(({ name, value }, i) => {
    const y = 122 + i * ROW;
    return `<rect x="${LEFT}" y="${y - 12}" width="14" height="14" fill="${seriesColor(i)}"/>${text({ x: 40, y }, name)}${text({ x: 330, y }, `${value.toFixed(1)} GiB`, { anchor: 'end' })}${text({ x: 410, y }, percent(value / available), { anchor: 'end' })}`;
  });
  const sum = `${total.toFixed(1)} of ${available.toFixed(1)} GiB are used`;
  return {
    name: 'memory-bar',
    title: `Memory of one GPU as slipway plan predicts it for ${file}`,
    description: `${sum}. ${parts.map(({ name, value }) => `${name}: ${value.toFixed(1)} GiB`).join('. ')}.`,
    height: 122 + parts.length * ROW,
    parts: [
      text({ x: LEFT, y: 30 }, `Memory of one GPU: ${sum}`, { bold: true }),
      `<rect x="${LEFT}" y="48" width="${BAR}" height="44" fill="${color('wait')}" fill-opacity="0.25" stroke="${color('rule')}"/>`,
      ...segments,
      text({ x: WIDTH - LEFT - 12, y: 75 }, 'free', { anchor: 'end' }),
      ...rows,
    ],
  };
}

/** What the parts of a step are, for readers who do not know the planner. */
const CAUSES: Readonly<Record<string, string>> = {
  matmul: 'Matrix products',
  elementwise: 'Norms and activations',
  head: 'Output layer and loss',
  dataParallel: 'Waiting for the network',
  host: 'CPU between kernels',
  optimizer: 'Optimizer step',
  restarts: 'Saving and failures',
};

const dollarsOf = (value: number): string => `$${number(value)}`;

/** The price of a run by what its time is spent on. */
export function costByCause(file: string, { usd: price, goodput, breakdown }: RunPlan): Picture {
  const { total: stepSeconds, ...seconds } = breakdown;
  const onDemand = price?.onDemand ?? Number.NaN;
  const shares = Object.entries(seconds).map(([key, value]) => [key, (value / stepSeconds) * goodput] as const);
  const dollars = [...shares, ['restarts', 1 - goodput] as const].map(([key, share]) => [key, share * onDemand]);
  const parts = largestFirst(Object.fromEntries(dollars), (key) => CAUSES[key] ?? words(key));
  const widest = parts[0]?.value ?? 1;
  const rows = parts.map(({ name, value }, i) => {
    const y = 62 + i * (ROW + 4);
    const width = ((value / widest) * 330).toFixed(1);
    return `${text({ x: LEFT, y }, name)}<rect x="206" y="${y - 14}" width="${width}" height="18" fill="${seriesColor(i)}"/>${text({ x: 605, y }, dollarsOf(value), { anchor: 'end' })}${text({ x: WIDTH - LEFT, y }, percent(value / onDemand), { anchor: 'end' })}`;
  });
  return {
    name: 'cost-by-cause',
    title: `Price of a run by cause as slipway plan predicts it for ${file}`,
    description: `${dollarsOf(onDemand)} on demand. ${parts.map(({ name, value }) => `${name}: ${dollarsOf(value)}`).join('. ')}.`,
    height: 62 + parts.length * (ROW + 4),
    parts: [text({ x: LEFT, y: 30 }, `What the ${dollarsOf(onDemand)} of the run pay for`, { bold: true }), ...rows],
  };
}
