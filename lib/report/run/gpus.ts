import { plot, TIME } from '../page/chart';
import { number, percent, UNKNOWN } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, legend, word } from '../page/parts';
import { color } from '../page/style';
import { leastBusyFirst, type ReportEfa } from '../read/log-lines';
import type { ReportGpus, RunReport } from './run-report';
import { attemptLegend, attemptLine, byAttempt } from './training';

/** Maximum number of hosts in the table: those with the lowest utilisation. */
const MAX_ROWS = 16;

/** GPU utilisation over time and by host; undefined when no host has reported it. */
export const gpusPart = ({ gpus }: RunReport): Html | undefined => gpus && html`${useChart(gpus)}${byHost(gpus)}`;

function useChart({ overTime }: ReportGpus): Html {
  const groups = byAttempt(
    overTime.flatMap(({ attempt, at, utilizationPercent: use }) =>
      use === null ? [] : [{ attempt, point: [Date.parse(at), use] }],
    ),
  );
  if (groups.length === 0) return html`<p class="note">No GPU has reported its utilisation.</p>`;
  return html`${legend(attemptLegend(groups))}${plot({
    id: 'gpus-chart',
    title: 'GPU utilisation over time, mean over the hosts',
    description: groups.map(([attempt, points]) => `Attempt ${attempt}: ${points.length} points`).join('. '),
    heights: { wide: 240, narrow: 220 },
    x: TIME,
    y: { name: 'percent', min: 0, max: 100, interval: 25 },
    series: groups.map(([attempt, points]) =>
      attemptLine(
        attempt,
        points.map(({ point }) => point),
      ),
    ),
  })}`;
}

function byHost({ hosts }: ReportGpus): Html {
  const least = [...hosts].sort(leastBusyFirst);
  return html`${itemTable({
    caption: 'GPUs by host: mean utilisation, and peak memory of the GPU with the highest usage',
    items: least.slice(0, MAX_ROWS),
    columns: [
      { head: 'host', kind: 'fixed', cell: ({ host }) => host },
      {
        head: 'utilisation',
        kind: 'num',
        cell: ({ utilizationPercent: use }) => percent(use === null ? null : use / 100),
      },
      {
        head: 'memory',
        kind: 'num',
        cell: ({ memoryGiB, totalGiB }) => `${number(memoryGiB, 1)} of ${number(totalGiB, 1)} GiB`,
      },
    ],
    layout: 'slim',
  })}${hosts.length > MAX_ROWS && html`<p class="note">The ${number(MAX_ROWS)} least busy of ${number(hosts.length)} hosts.</p>`}`;
}

const VERDICTS: Readonly<Record<string, { text: string; meaning: string; color: string }>> = {
  'efa+gdr': { text: 'EFA with GPUDirect RDMA', meaning: 'traffic went GPU to GPU over EFA', color: color('good') },
  efa: { text: 'EFA without GPUDirect', meaning: 'traffic went over EFA through host memory', color: color('warn') },
  sockets: { text: 'TCP sockets', meaning: 'EFA did not carry the traffic', color: color('bad') },
  'single-host': { text: 'single host', meaning: 'no traffic between hosts', color: color('muted') },
  unknown: { text: 'unknown', meaning: 'NCCL did not say which network it used', color: color('warn') },
};

/** Whether EFA carried the traffic, according to NCCL's log lines. */
export function efaPart({ efa, missing }: RunReport): Html {
  if (!efa) return unknown('The verdict was not read', missing.efa);
  if (efa.length === 0)
    return unknown('No attempt has reported a verdict (it is reported with the first step, and never with efa: off)');
  return html`${efaTable(efa)}${efa.map(evidence)}`;
}

const efaTable = (efa: readonly ReportEfa[]): Html =>
  itemTable({
    caption: 'Verdict of each attempt, from the log of NCCL and libfabric',
    layout: 'cards',
    items: efa,
    columns: [
      { head: 'Attempt', kind: 'fixed', cell: (e) => `attempt ${e.attempt}` },
      { head: 'Verdict of the slowest host', cell: (e) => verdictCell(e.verdict) },
      { head: 'Hosts', cell: (e) => hostsText(e) },
      { head: 'Interfaces', kind: 'num', cell: (e) => interfacesText(e) },
      { head: 'Provider', cell: (e) => e.provider ?? UNKNOWN },
      { head: 'aws-ofi-nccl', cell: (e) => e.plugin ?? UNKNOWN },
      { head: 'libfabric', cell: (e) => e.libfabric ?? UNKNOWN },
      { head: 'NCCL', cell: (e) => e.nccl ?? UNKNOWN },
      { head: 'Bus bandwidth', kind: 'num', cell: (e) => bandwidthText(e) },
    ],
  });

function verdictCell(verdict: string): Html {
  const known = VERDICTS[verdict];
  return known ? html`${word(known.text, known.color)}<br>${known.meaning}` : html`${verdict}`;
}

/** `1 sockets, 62 efa+gdr (slower: algo-7)`. */
function hostsText({ hosts, slowerHosts = [] }: ReportEfa): string {
  if (!hosts) return UNKNOWN;
  const counts = Object.entries(hosts).map(([verdict, count]) => `${number(count)} ${verdict}`);
  return counts.join(', ') + (slowerHosts.length > 0 ? ` (slower: ${slowerHosts.join(', ')})` : '');
}

function interfacesText({ interfaces, devices, expectedInterfaces }: ReportEfa): string {
  const seen = interfaces ?? devices;
  if (!seen || !expectedInterfaces) return number(seen);
  const few = 2 * seen < expectedInterfaces ? ', fewer than half' : '';
  return `${number(seen)} of ${number(expectedInterfaces)}${few}`;
}

function bandwidthText({ busBandwidthGBps, expectedGBps }: ReportEfa): string {
  if (busBandwidthGBps === null || busBandwidthGBps === undefined) return UNKNOWN;
  const expected = expectedGBps ? ` of ${number(expectedGBps, 1)}` : '';
  return `${number(busBandwidthGBps, 1)}${expected} GB/s`;
}

const evidence = (e: ReportEfa): Html | undefined =>
  e.evidence.length === 0
    ? undefined
    : html`<details><summary>Evidence of attempt ${e.attempt}: ${e.evidence.length} log lines</summary><pre>${e.evidence.join('\n')}</pre></details>`;
