import { stringify } from 'yaml';
import { html } from '../page/html';
import type { Section } from '../page/page';
import { table } from '../page/table';
import type { RunReport } from './run-report';

/** Where the values lie that people ask for first. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  Model: ['model', 'preset'],
  'Sequence length': ['training', 'sequenceLength'],
  'Micro-batch size': ['training', 'microBatchSize'],
  'Global batch size': ['training', 'globalBatchSize'],
  Precision: ['training', 'precision'],
  'Learning rate': ['code', 'arguments', 'learning-rate'],
  'Instance type': ['compute', 'instanceType'],
  Instances: ['compute', 'instanceCount'],
  Library: ['distribution', 'library'],
};

/** What was launched; nothing when the launcher does not say. */
export function launchSections({ launch }: RunReport): Section[] {
  if (!launch) return [];
  const { note, tags, spec } = launch;
  const rows = [
    ...(note ? [['Note', note]] : []),
    ...Object.entries(FIRST).flatMap(([name, path]) => {
      const value = path.reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], spec);
      return typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [];
    }),
    ...Object.entries(tags).map(([name, value]) => [`Tag ${name}`, value]),
  ];
  const body = html`${table({
    caption: 'What was launched',
    layout: 'slim',
    columns: [
      { head: 'Option', kind: 'fixed' },
      { head: 'Value', kind: 'long' },
    ],
    rows,
  })}<details><summary>The run file with its overrides and defaults</summary><pre>${stringify(spec, { lineWidth: 0 })}</pre></details>`;
  return [{ id: 'launch', title: 'Configuration', body }];
}
