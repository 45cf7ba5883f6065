import { number, percent, words } from '../page/format';
import { html } from '../page/html';
import type { Section } from '../page/page';
import { swatch } from '../page/parts';
import { stackBar } from '../page/stack-bar';
import { seriesColor } from '../page/style';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

/** More descriptive names than those of the planner. */
const NAMES: Readonly<Record<string, string>> = {
  logits: 'Logits and loss',
  working: 'Gathered blocks',
  buffers: 'Communication buffers',
  fragmentation: 'Allocator fragmentation',
};

/** Name of a component of the memory, as people read it. */
export const memoryName = (component: string): string => NAMES[component] ?? words(component);

/** Memory of the GPU with the highest usage by component, compared with the available memory. */
export function memorySection({ plan }: PlanReport): Section {
  const { total, available, ...components } = plan.memoryGiB;
  const parts = Object.entries(components)
    .filter(([, value]) => value > 0)
    .map(([name, value], i) => ({ name: memoryName(name), value, color: seriesColor(i) }));
  return {
    id: 'memory',
    title: 'Memory',
    body: html`${stackBar({
      title: 'Memory by component on the GPU with the highest usage',
      description: parts.map((p) => `${p.name}: ${number(p.value, 1)} GiB`).join('. '),
      parts,
      limit: available,
    })}${table({
      caption:
        'The GPU with the highest usage by component, as a share of the memory that the allocator can reserve (vertical line)',
      layout: 'slim',
      columns: [{ head: 'Component' }, { head: 'GiB', kind: 'num' }, { head: 'Share', kind: 'num' }],
      rows: parts.map((p) => [html`${swatch(p.color)}${p.name}`, number(p.value, 2), percent(p.value / available)]),
      foot: ['all', `${number(total, 2)} of ${number(available, 2)}`, percent(total / available)],
    })}`,
  };
}
