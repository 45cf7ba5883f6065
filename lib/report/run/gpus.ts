import { chart, grid, xAxis, yAxis } from '../page/chart';
import { number, percent } from '../page/format';
import { type Html, html } from '../page/html';
import type { Section } from '../page/page';
import { legend } from '../page/parts';
import { table } from '../page/table';
import { leastBusyFirst } from '../read/gpu-lines';
import { attemptLegend, attemptLine } from './loss';
import type { ReportGpus, RunReport } from './run-report';

/** Maximum number of hosts in the table: those with the lowest utilisation. */
const MAX_ROWS = 16;

/** GPU utilisation over time and by host; no section when no host has reported it. */
export const gpusSections = ({ gpus }: RunReport): Section[] =>
  gpus === undefined ? [] : [{ id: 'gpus', title: 'GPUs', body: html`${useChart(gpus)}${byHost(gpus)}` }];

function useChart({ overTime }: ReportGpus): Html {
  const groups = new Map<number, number[][]>();
  for (const { attempt, at, utilizationPercent } of overTime) {
    if (utilizationPercent === null) continue;
    const points = groups.get(attempt) ?? [];
    groups.set(attempt, points);
    points.push([Date.parse(at), utilizationPercent]);
  }
  if (groups.size === 0) return html`<p class="note">No GPU has reported its utilisation.</p>`;
  return html`${legend(attemptLegend(groups))}${chart({
    id: 'gpus-chart',
    title: 'GPU utilisation over time, mean over the hosts',
    description: [...groups].map(([attempt, points]) => `Attempt ${attempt}: ${points.length} points`).join('. '),
    heights: { wide: 240, narrow: 220 },
    option: (isNarrow) => ({
      grid: grid(isNarrow),
      xAxis: xAxis({ name: 'UTC', type: 'time', isNarrow, min: 'dataMin', max: 'dataMax' }),
      yAxis: yAxis({ name: 'percent', isNarrow, min: 0, max: 100, interval: 25 }),
      series: [...groups].map(([attempt, points]) => attemptLine(attempt, points)),
    }),
  })}`;
}

function byHost({ hosts }: ReportGpus): Html {
  const least = [...hosts].sort(leastBusyFirst);
  const rest =
    hosts.length > MAX_ROWS
      ? html`<p class="note">The ${number(MAX_ROWS)} least busy of ${number(hosts.length)} hosts.</p>`
      : '';
  return html`${table({
    caption: 'GPUs by host: mean utilisation, and peak memory of the GPU with the highest usage',
    columns: [
      { head: 'host', kind: 'fixed' },
      { head: 'utilisation', kind: 'num' },
      { head: 'memory', kind: 'num' },
    ],
    rows: least
      .slice(0, MAX_ROWS)
      .map(({ host, utilizationPercent: use, memoryGiB, totalGiB }) => [
        host,
        use === null ? '–' : percent(use / 100),
        `${number(memoryGiB, 1)} of ${number(totalGiB, 1)} GiB`,
      ]),
    layout: 'slim',
  })}${rest}`;
}
