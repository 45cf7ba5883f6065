import { duration, percent, words } from '../page/format';
import { html } from '../page/html';
import type { Section } from '../page/page';
import { swatch } from '../page/parts';
import { stackBar } from '../page/stack-bar';
import { color } from '../page/style';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

interface Kind {
  name: string;
  color: string;
}

const COMPUTE: Kind = { name: 'computation', color: color('c1') };
const COMMUNICATION: Kind = { name: 'communication', color: color('c2') };
const OTHER: Kind = { name: 'other', color: color('c8') };

const KIND_OF: Readonly<Record<string, Kind>> = {
  matmul: COMPUTE,
  attention: COMPUTE,
  elementwise: COMPUTE,
  recompute: COMPUTE,
  head: COMPUTE,
  tensorParallel: COMMUNICATION,
  contextParallel: COMMUNICATION,
  pipelineParallel: COMMUNICATION,
  expertParallel: COMMUNICATION,
  dataParallel: COMMUNICATION,
};

/** Breakdown of the time of one step. */
export function stepTimeSection({ plan }: PlanReport): Section {
  const { total, ...parts } = plan.breakdown;
  const shown = Object.entries(parts)
    .filter(([, seconds]) => seconds > 0)
    .map(([name, seconds]) => ({ name: words(name), seconds, kind: KIND_OF[name] ?? OTHER }))
    .sort((a, b) => b.seconds - a.seconds);
  const secondsOf = (kind: Kind) => shown.filter((p) => p.kind === kind).reduce((sum, p) => sum + p.seconds, 0);
  const kinds = [COMPUTE, COMMUNICATION, OTHER].filter((kind) => secondsOf(kind) > 0);
  return {
    id: 'step-time',
    title: 'Step time',
    body: html`${stackBar({
      title: 'Step time by kind',
      description: kinds.map((k) => `${k.name}: ${duration(secondsOf(k))}`).join('. '),
      parts: kinds.map((k) => ({ name: k.name, value: secondsOf(k), color: k.color })),
    })}${table({
      caption:
        'One optimizer step on the slowest rank, largest part first; only communication that is not overlapped with computation',
      layout: 'slim',
      columns: [{ head: 'Part' }, { head: 'Kind' }, { head: 'Time', kind: 'num' }, { head: 'Share', kind: 'num' }],
      rows: shown.map((p) => [
        p.name,
        html`${swatch(p.kind.color)}${p.kind.name}`,
        duration(p.seconds),
        percent(p.seconds / total),
      ]),
      foot: ['all', '', duration(total), ''],
    })}`,
  };
}
