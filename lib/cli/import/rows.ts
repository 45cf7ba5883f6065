/** Options of a run file, by section. */
export type Draft = Record<string, unknown>;

/** A value of the source that was converted, or that is not in the run file. */
export interface NotCarried {
  /** Path in the source; for a request, in the terms of the API: `InputDataConfig[train].CompressionType`. */
  field: string;
  value: unknown;
  why: string;
}

/** A draft, and remarks about values that have no place in a request. */
export interface Drafted {
  draft: Draft;
  remarks: NotCarried[];
}

/** Converts a value of the source to that of a run file; undefined when it must not be imported. */
export type Read = (value: unknown) => unknown;

/** Options of a run file, with the path of each value in the source. */
export type Rows = Readonly<Record<string, string | readonly [place: string, read: Read]>>;

/** Whether the value is a JSON object, not a list. */
export const isObject = (value: unknown): value is Draft =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isEmpty = (value: unknown): boolean =>
  value === undefined || ((isObject(value) || Array.isArray(value)) && Object.keys(value).length === 0);

/** The value at a path such as `model.layers` or `Groups.0.Name`. */
export const valueAt = (source: unknown, place: string): unknown =>
  place.split('.').reduce<unknown>((value, key) => (value as Draft | null | undefined)?.[key], source);

/** The options of a run file that a source has. */
export function convert(rows: Rows, source: unknown): Draft {
  const draft: Draft = {};
  for (const [option, row] of Object.entries(rows)) {
    const [place, read = (value: unknown) => value] = [row].flat() as [string, Read?];
    const value = read(valueAt(source, place));
    if (isEmpty(value)) continue;
    const [key = '', ...sections] = option.split('.').reverse();
    let section = draft;
    for (const name of sections.reverse()) {
      section[name] ??= {};
      section = section[name] as Draft;
    }
    section[key] = value;
  }
  return draft;
}

export const each =
  (rows: Rows): Read =>
  (list) =>
    Array.isArray(list) ? list.map((item) => convert(rows, item)) : undefined;

/** Rejects the value that is the default of a run file. */
export const unless =
  (usual: unknown): Read =>
  (value) =>
    value === usual ? undefined : value;

/** Accepts one value, and replaces it. */
export const when =
  (wanted: unknown, result: unknown): Read =>
  (value) =>
    value === wanted ? result : undefined;

/** Removes absent options and empty lists and maps, so that defaults apply. */
export const filled = (section: Draft): Draft =>
  Object.fromEntries(Object.entries(section).filter(([, value]) => !isEmpty(value)));

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
