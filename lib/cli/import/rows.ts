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
type Read = (value: unknown) => unknown;

/** One option of a run file, and the paths of its value in the source, in order of precedence. */
export type Row = readonly [option: string, places: string | readonly string[], read?: Read];

/** A value that one row found. */
export interface Found {
  option: string;
  place: string;
  value: unknown;
}

/** Whether the value is a JSON object, not a list. */
export const isObject = (value: unknown): value is Draft =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isEmpty = (value: unknown): boolean =>
  value === undefined || ((isObject(value) || Array.isArray(value)) && Object.keys(value).length === 0);

/** The value at a path such as `model.layers` or `Groups.0.Name`. */
export const valueAt = (source: unknown, place: string): unknown =>
  place.split('.').reduce<unknown>((value, key) => (value as Draft | null | undefined)?.[key], source);

/** The values of all rows that the source has. */
export const findRows = (rows: readonly Row[], source: unknown): Found[] =>
  rows.flatMap(([option, places, read = (value) => value]) => {
    const values = [places].flat().map((place) => ({ option, place, value: read(valueAt(source, place)) }));
    return values.find(({ value }) => !isEmpty(value)) ?? [];
  });

/** A draft with the values that rows found. */
export function draftWith(found: readonly Found[]): Draft {
  const draft: Draft = {};
  for (const { option, value } of found) {
    const sections = option.split('.');
    const last = sections.pop() ?? '';
    let section = draft;
    for (const key of sections) {
      section[key] ??= {};
      section = section[key] as Draft;
    }
    section[last] = value;
  }
  return draft;
}

/** The options of a run file that a source has. */
export const convert = (rows: readonly Row[], source: unknown): Draft => draftWith(findRows(rows, source));

/** Converts each item of a list. */
export const each =
  (rows: readonly Row[]): Read =>
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

const SECTIONS = [
  'name',
  'tags',
  'model',
  'training',
  'code',
  'image',
  'compute',
  'distribution',
  'data',
  'checkpoints',
  'output',
  'limits',
  'network',
  'observability',
  'hyperparameters',
  'environmentVariables',
];

/** A run file's sections in their usual order. */
export const inOrder = (draft: Draft): Draft =>
  Object.fromEntries(SECTIONS.filter((key) => draft[key] !== undefined).map((key) => [key, draft[key]]));

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
