/** Options of a run file, by section. */
export type Draft = Record<string, unknown>;

/** A draft, and remarks about values that have no place in a request. */
export interface Drafted {
  draft: Draft;
  /** Values of the source that were converted, or could not be imported: field, value, reason. */
  remarks: { field: string; value: unknown; why: string }[];
}

/** Maximum length of a run name. */
const NAME_LENGTH = 32;

/** Converts a job name to lower-case letters, digits and inner hyphens, without the timestamp that SDKs append. */
export function runName(jobName: string): string {
  const plain = jobName.replace(/-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}(-\d{1,3})?$|-\d{12,14}$/, '');
  const name = plain
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LENGTH);
  return name.replace(/^-+|-+$/g, '') || 'imported';
}

/** Removes empty sections, so that defaults apply. */
export function filled(section: Draft | undefined): Draft | undefined {
  const kept = Object.entries(section ?? {}).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
