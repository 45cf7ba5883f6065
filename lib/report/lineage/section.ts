import type { Section } from '../page/page';
import { table } from '../page/table';
import type { RunReport } from '../run/run-report';
import { lineageRows } from './lineage-rows';

/** What the run was made from; nothing where the launcher did not say it. */
export function lineageSections({ lineage }: RunReport): Section[] {
  if (!lineage) return [];
  const body = table({
    caption:
      'What the run was made from: digests by its newest complete checkpoint, addresses as its run file writes them',
    columns: [
      { head: 'Part', kind: 'fixed' },
      { head: 'Value', kind: 'long' },
    ],
    rows: lineageRows(lineage),
  });
  return [{ id: 'lineage', title: 'Lineage', body }];
}
