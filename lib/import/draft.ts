/** Options of a run file, section by section, as they will be written. */
export type Draft = Record<string, unknown>;

/** A draft, and what the source says of it that no request has a place for. */
export interface Drafted {
  draft: Draft;
  /** Places of the source that were read into the draft in another form, or could not be: field, value, reason. */
  remarks: { field: string; value: unknown; why: string }[];
}

/** Longest name of a run. */
const NAME_LENGTH = 32;

/** Lower-case letters, digits and inner hyphens, without the time that SDKs append. */
export function runName(jobName: string): string {
  const plain = jobName.replace(/-\d{4}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}(-\d{1,3})?$|-\d{12,14}$/, '');
  const name = plain
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LENGTH);
  return name.replace(/^-+|-+$/g, '') || 'imported';
}

/** Without empty sections, so that defaults stay defaults. */
export function filled(section: Draft | undefined): Draft | undefined {
  const kept = Object.entries(section ?? {}).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
