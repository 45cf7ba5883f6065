import { bytes, duration, number, time, UNKNOWN } from '../page/format';
import { html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { table } from '../page/table';
import type { ReportCheckpoint, RunReport } from './run-report';

/** Number of newest checkpoints to show; older ones are collapsed. */
const SHOWN = 12;

/** Committed checkpoints, newest first: location, content and cost of the save. */
export function checkpointsSection(report: RunReport): Section {
  const title = 'Checkpoints';
  const { checkpoints } = report;
  if (!checkpoints)
    return { id: 'checkpoints', title, body: unknown('Checkpoints were not read', report.missing.checkpoints) };
  if (checkpoints.length === 0)
    return { id: 'checkpoints', title, body: unknown('No committed checkpoint was found', report.missing.checkpoints) };
  const newest = [...checkpoints].reverse();
  const older = newest.slice(SHOWN);
  return {
    id: 'checkpoints',
    title,
    body: html`${report.missing.checkpoints && unknown('Not everything was read', report.missing.checkpoints)}${checkpointTable(
      `Committed checkpoints, newest first; times in UTC`,
      newest.slice(0, SHOWN),
    )}${
      older.length > 0 &&
      html`<details><summary>${older.length} older checkpoints</summary>${checkpointTable('Older checkpoints', older)}</details>`
    }`,
  };
}

const checkpointTable = (caption: string, rows: readonly ReportCheckpoint[]) =>
  table({
    caption,
    columns: [
      { head: 'Step', kind: 'num' },
      { head: 'Attempt', kind: 'num' },
      { head: 'Saved', kind: 'fixed' },
      { head: 'In the bucket' },
      { head: 'Size', kind: 'num' },
      { head: 'Objects', kind: 'num' },
      { head: 'Ranks', kind: 'num' },
      { head: 'Blocked', kind: 'num' },
      { head: 'Until committed', kind: 'num' },
    ],
    rows: rows.map((c) => [
      number(c.step),
      number(c.attempt),
      time(c.savedAt),
      c.inBucket ?? UNKNOWN,
      bytes(c.sizeBytes),
      number(c.objects),
      number(c.worldSize),
      duration(c.blockedSeconds),
      duration(c.totalSeconds),
    ]),
  });
