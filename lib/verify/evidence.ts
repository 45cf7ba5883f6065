import { counts, type VerifyRecord } from './record';

const NONE = 'Nothing of it has run on a real AWS account yet.';

/**
 * What was run where, for the README, from committed records.
 * @throws Error when a record is of an embedded AWS, which is no evidence
 */
export function evidenceSentence(records: readonly VerifyRecord[]): string {
  const embedded = records.find((record) => record.embedded);
  if (embedded)
    throw new Error(
      `docs/evidence: must hold records of real accounts, got one of an embedded AWS (${embedded.startedAt}); remove it`,
    );
  if (records.length === 0) return NONE;
  const parts = [...records]
    .sort((a, b) => a.startedAt.localeCompare(b.startedAt))
    .map((record) => {
      const { holds, differs, unknown } = counts(record.probes);
      return `${record.startedAt.slice(0, 10)} in ${record.region}, level ${record.level}: ${holds} hold, ${differs} differ, ${unknown} unknown`;
    });
  return `\`slipway verify\` ran on real accounts: ${parts.join('; ')}.`;
}
