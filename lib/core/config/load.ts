import { z } from 'zod';
import { type Descriptor, descriptorSchema } from './descriptor';
import { type EnvironmentFile, environmentFileSchema } from './environment-file';
import { type Described, isWritten } from './formats/field';
import { isGroup } from './formats/json';
import { hasErrors, type Issue, issue } from './issue';
import { MAX_CHARACTERS } from './reading/limits';
import { applyOverrides, parsePath } from './reading/overrides';
import { type PartialFile, partialFile, partialRun } from './reading/partial-validation';
import { type Position, parseYaml } from './reading/yaml-file';
import { zodIssues } from './reading/zod-issues';
import { resolveRun } from './resolve-run';
import { type RunFile, runFileSchema } from './run-file';
import type { RunSpec } from './run-spec';

/** A parsed file: its value if the schema accepts it, and the issues found. */
export interface Loaded<T> {
  /** Absent when an issue is an error. */
  value?: T;
  issues: Issue[];
  /** As of the file: undefined for a value that an override has set. */
  positionOf(path: readonly PropertyKey[]): Position | undefined;
}

export interface LoadedRun extends Loaded<RunSpec> {
  /** The rest of the file when the schema rejected values; absent when that is too little to check. */
  partial?: PartialFile;
}

/** Parses the text of a run file: YAML, `--set` overrides, schema, defaults. Never throws. */
export function loadRun(text: string, overrides: readonly string[] = []): LoadedRun {
  const { data, ...loaded } = loadFile<RunFile>(text, overrides, runFileSchema, MAX_CHARACTERS.runFile);
  if (loaded.value) return { ...loaded, value: resolveRun(loaded.value) };
  return { issues: loaded.issues, positionOf: loaded.positionOf, partial: partialRun(data) };
}

export interface LoadedEnvironment extends Loaded<EnvironmentFile> {
  /** As for a run file. */
  partial?: PartialFile<EnvironmentFile>;
}

/** Parses the text of an environment file. Never throws. */
export function loadEnvironment(text: string, overrides: readonly string[] = []): LoadedEnvironment {
  const { data, ...loaded } = loadFile<EnvironmentFile>(text, overrides, environmentFileSchema);
  return loaded.value ? loaded : { ...loaded, partial: partialFile(data, environmentFileSchema) };
}

/** Parses a descriptor (JSON text). Never throws. */
export function loadDescriptor(text: string): Loaded<Descriptor> {
  try {
    return { ...check<Descriptor>(JSON.parse(text), descriptorSchema), positionOf: () => undefined };
  } catch (error) {
    const found = issue('schema/json', 'error', '', {
      must: 'must be JSON',
      got: (error as Error).message,
      fix: 'correct it, or name another file',
    });
    return { issues: [found], positionOf: () => undefined };
  }
}

/** Whether a text is an environment file: more of its keys are options of environments than of runs. */
export const isEnvironmentFile = (text: string): boolean => moreOfEnvironments(text) > 0;

/** Whether a text is a run file: more of its keys are options of runs than of environments. */
export const isRunFile = (text: string): boolean => moreOfEnvironments(text) < 0;

/** The number of keys that are options of environments, minus those that are options of runs. */
function moreOfEnvironments(text: string): number {
  const { data } = parseYaml(text);
  if (!isGroup(data)) return 0;
  const [ofEnvironment, ofRun] = [environmentFileSchema, runFileSchema].map(
    ({ shape }) => Object.keys(data).filter((key) => Object.hasOwn(shape, key)).length,
  );
  return (ofEnvironment ?? 0) - (ofRun ?? 0);
}

function loadFile<T>(
  text: string,
  overrides: readonly string[],
  schema: z.ZodType,
  most: number = MAX_CHARACTERS.file,
): Loaded<T> & { data?: unknown } {
  const isText = (path: readonly PropertyKey[]) => isWritten(nodeAt(schema, path));
  const file = parseYaml(text, most, isText);
  if (hasErrors(file.issues)) return { issues: file.issues, positionOf: file.positionOf };
  const set = applyOverrides(file.data, overrides, (path) => keysAt(schema, path), isText);
  if (hasErrors(set.issues)) return { issues: set.issues, positionOf: () => undefined };
  const written = overrides.map((override) => parsePath(override.split('=', 1)[0]?.trim() ?? '') ?? []);
  const isSet = (path: readonly PropertyKey[]) => written.some((one) => one.every((key, i) => key === path[i]));
  const positionOf = (path: readonly PropertyKey[]) => (isSet(path) ? undefined : file.positionOf(path));
  return { ...check<T>(set.data, schema), data: set.data, positionOf };
}

function check<T>(data: unknown, schema: z.ZodType): { value?: T; issues: Issue[] } {
  if (!isGroup(data)) {
    const needed = schema === environmentFileSchema ? 'name: and regions:' : 'name:, code: and compute:';
    const text = { must: 'must be a section of options', got: data, fix: `write ${needed}` };
    return { issues: [issue('schema/type', 'error', '', text)] };
  }
  const parsed = schema.safeParse(data, { reportInput: true });
  if (parsed.success) return { value: parsed.data as T, issues: [] };
  return { issues: zodIssues(parsed.error, (path) => keysAt(schema, path)) };
}

/** The keys that the schema allows at `path`; [] when it is not a section with fixed keys. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  const { shape } = (nodeAt(schema, path) ?? {}) as { shape?: Record<string, unknown> };
  return shape ? Object.keys(shape) : [];
}

function nodeAt(schema: z.ZodType, path: readonly PropertyKey[]): unknown {
  let node: unknown = unwrap(schema);
  for (const segment of path) node = unwrap(childOf(node, segment));
  return node;
}

function unwrap(node: unknown): unknown {
  let inner = node as { def?: { innerType?: unknown; in?: unknown } } | undefined;
  while (inner?.def?.innerType ?? inner?.def?.in) inner = (inner.def?.innerType ?? inner.def?.in) as typeof inner;
  return inner;
}

function childOf(node: unknown, segment: PropertyKey): unknown {
  const typed = node as { shape?: Record<string, unknown>; element?: unknown; valueType?: unknown } | undefined;
  if (typeof segment === 'number') return typed?.element;
  return typed?.shape?.[String(segment)] ?? typed?.valueType;
}

/**
 * The JSON Schema of run files or environment files, for editors. Descriptions end with the default, because editors do not show it
 * otherwise.
 * @param libraries allowed values of `distribution.library`
 */
export function jsonSchema(kind: 'run' | 'environment', libraries: readonly string[] = []): Record<string, unknown> {
  const schema = kind === 'run' ? runFileSchema : environmentFileSchema;
  const json = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => describe(jsonSchema, z.globalRegistry.get(zodSchema)),
  });
  const distribution = (json.properties as Record<string, { properties?: Record<string, object> }>).distribution;
  if (distribution?.properties && libraries.length > 0)
    distribution.properties.library = { ...distribution.properties.library, enum: [...libraries] };
  return { ...json, title: `Slipway ${kind} file` };
}

/** zod omits default and examples for a transformed value; ours are values as written in the file. */
function describe(node: Described, { default: filled, examples }: Described = {}): void {
  node.default ??= filled;
  node.examples ??= examples;
  for (const key of ['default', 'examples'] as const) if (node[key] === undefined) delete node[key];
  const { description } = node;
  if (description === undefined || node.default === undefined || description.includes('Default: ')) return;
  const text = typeof node.default === 'string' && node.default !== '' ? node.default : JSON.stringify(node.default);
  node.description = `${description} Default: ${text}.`;
}
