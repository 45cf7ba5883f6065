import type { Section } from '../page/page';
import { table } from '../page/table';
import type { RunReport } from '../run/run-report';
import { lineageRows } from './lineage-rows';

/** The section with the origin of the run; empty when the launcher does not provide it. */
export function lineageSections({ lineage }: RunReport): Section[] {
  if (!lineage) return [];
  const body = table({
    caption: 'Origin of the run: digests from its newest complete checkpoint, locations from its run file',
    columns: [
      { head: 'Part', kind: 'fixed' },
      { head: 'Value', kind: 'long' },
    ],
    rows: lineageRows(lineage),
  });
  return [{ id: 'lineage', title: 'Lineage', body }];
}
