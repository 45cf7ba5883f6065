import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderVerifyPage } from '../../report/render-verify-page';
import type { VerifyReport } from '../../report/verify/verify-report';
import { UsageError } from '../exit';
import { recordProblems, requireAssumption, type VerifyRecord } from './account';

const FOLDER = '.slipway/verify';

/** The record and its page, written again after each probe, so that nothing is lost when the command ends early. */
export class RecordFiles {
  readonly record: string;
  readonly page: string;

  constructor(id: string) {
    mkdirSync(FOLDER, { recursive: true });
    this.record = path.join(FOLDER, `${id}.json`);
    this.page = path.join(FOLDER, `${id}.html`);
  }

  write(record: VerifyRecord): void {
    replace(this.record, `${JSON.stringify(record, null, 2)}\n`);
    replace(this.page, renderVerifyPage(reportOf(record)));
  }
}

/** A reader of the file sees either the old or the new content, never a part. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/** @throws UsageError when the file is not a record of this account, Region and environment */
export function readRecord(
  file: string,
  place: Pick<VerifyRecord, 'account' | 'region' | 'environment'>,
): VerifyRecord {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(
      `--resume: must be a readable record, got ${file}: ${(error as Error).message}; use a file in ${FOLDER}/`,
    );
  }
  const problems = recordProblems(value, place);
  if (problems.length > 0)
    throw new UsageError(`--resume: ${problems.join(', ')}; use a record of this account, Region and environment`);
  return value as VerifyRecord;
}

const reportOf = (record: VerifyRecord): VerifyReport => ({
  ...record,
  rows: record.probes.map((result) => {
    const { claim, ifWrong } = requireAssumption(result.assumption);
    return { ...result, level: result.id.split('/')[0] ?? '', claim, ifWrong };
  }),
});
