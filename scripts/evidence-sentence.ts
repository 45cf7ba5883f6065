import { counts, type VerifyRecord } from '../lib/cli/verify/account/record';

const NONE = 'Slipway has not run on a real AWS account yet.';

/**
 * Sentence for the README about verification runs, from the committed records.
 * @throws Error for a record from the AWS emulator, which is not evidence
 */
export function evidenceSentence(records: readonly VerifyRecord[]): string {
  const embedded = records.find((record) => record.embedded);
  if (embedded)
    throw new Error(
      `docs/evidence: must contain records of real accounts, got one from the AWS emulator (${embedded.startedAt}); remove it`,
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
