import { type Document, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { Config } from '../catalog/model/config-fields';
import { readConfig } from '../catalog/model/read-config';
import type { ModelShape } from '../catalog/model/shape';
import { isGroup } from './formats/json';
import { hubSourceText, isHubSource, parseHubSource } from './formats/places';
import { MAX_CHARACTERS } from './reading/limits';
import { isTooDeep, parseYaml } from './reading/yaml-file';
import type { Finding } from './rule';

type ModelConfig = { shape?: ModelShape; findings: Finding[] };

/** Whether `model.config` contains the file itself; otherwise it is a path or an S3 URI. */
const isConfigText = (config: string): boolean => config.trimStart().startsWith('{');

/** The keys of a config.json as they are written; none of a text that is no config.json. */
export function configKeys(text = ''): Config {
  const { data } = parseYaml(text);
  return typeof data === 'object' && data !== null ? (data as Config) : {};
}

/** Parses the text of a config.json; there is no shape when there are findings, each with the key and its line. Never throws. */
export function readModelConfig(text: string): ModelConfig {
  if (!isConfigText(text)) {
    const fix = text.startsWith('s3://')
      ? 'give --environment, whose rights read it'
      : 'give its path from the run file on';
    return refusal({ must: 'must be a config.json of at most 1 MB in the repository of the run file', got: text, fix });
  }
  const { data, issues, positionOf } = parseYaml(text);
  if (!isGroup(data)) return refusal({ must: 'must be JSON', got: issues[0]?.message, fix: 'correct the file' });
  const { shape, problems } = readConfig(data);
  const findings = problems.map(({ key, must, got, fix }) => {
    const line = Object.hasOwn(data, key) ? ` (line ${positionOf([key])?.line})` : '';
    return { path: PATH, must: `${key}${line} ${must}`, got: short(got), fix };
  });
  return { ...(shape && { shape }), findings };
}

const LONGEST = 80;

/** A value for a message: only the first entries of a long list. */
function short(got: unknown): unknown {
  const text = JSON.stringify(got) ?? '';
  return typeof got === 'object' && text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : got;
}

const PATH = 'model.config';
const refusal = (finding: Omit<Finding, 'path'>): ModelConfig => ({ findings: [{ path: PATH, ...finding }] });

/** A run file whose `model.config` contains the text of the config.json, so that its readers need no second file. */
export interface InlinedRun {
  text: string;
  overrides: string[];
}

/** Those who read the run file report keys that it has twice, in less time. */
const OPTIONS = { uniqueKeys: false };
const CONFIG_OVERRIDE = /^\s*model\.config\s*=/;

/** The file that `model.config` names in a run file or its `--set` overrides; undefined when it names none. */
export function namedConfig(text: string, overrides: readonly string[] = []): string | undefined {
  const override = overrides.filter((one) => CONFIG_OVERRIDE.test(one)).at(-1);
  if (override !== undefined) return onlyName(override.replace(CONFIG_OVERRIDE, '').trim());
  if (!/\bconfig\b/.test(text) || text.length > MAX_CHARACTERS.runFile || isTooDeep(text)) return undefined;
  const value: unknown = parseDocument(text, OPTIONS).getIn(['model', 'config']);
  return typeof value === 'string' ? onlyName(value) : undefined;
}

const onlyName = (value: string): string | undefined => (value === '' || isConfigText(value) ? undefined : value);

/** Whether the document has a place for `model.config`; its readers report any other errors. */
function takesConfig({ errors, contents }: Document.Parsed): boolean {
  if (errors.length > 0) return false;
  if (contents === null || (isScalar(contents) && contents.value === null)) return true;
  if (!isMap(contents)) return false;
  const model = contents.get('model', true);
  return model === undefined || isMap(model) || (isScalar(model) && model.value === null);
}

/** Replaces the name of the config.json by its text, unless that is of another kind. The line numbers of the run file do not change. */
export function inlineConfig(text: string, overrides: readonly string[], config: string): InlinedRun {
  if (!isConfigText(config)) return { text, overrides: [...overrides] };
  const others = overrides.filter((one) => !CONFIG_OVERRIDE.test(one));
  const document = parseDocument(text, OPTIONS);
  const node = document.getIn(['model', 'config'], true) as { range?: [number, number, number] } | undefined;
  const quoted = JSON.stringify(config);
  if (node?.range)
    return { text: text.slice(0, node.range[0]) + quoted + text.slice(node.range[1]), overrides: others };
  if (!takesConfig(document)) return { text, overrides: [...overrides] };
  // A file, or a `model:`, without a value is a scalar, which cannot have keys.
  if (isScalar(document.contents)) document.contents = null;
  if (isScalar(document.get('model', true))) document.delete('model');
  document.setIn(['model', 'config'], config);
  return { text: String(document), overrides: others };
}

/** A commit that was fetched, and the config.json of a model. */
export interface FetchedCommit {
  commit: string;
  config?: string;
}

/** Fetched commits by the source that a run file names. */
export type FetchedCommits = Readonly<Record<string, FetchedCommit>>;

const HUB_OVERRIDE = /^\s*(model\.weights|data\[\d+\]\.source)\s*=\s*(hf:\S+)\s*$/;

interface Named {
  text: string;
  /** Place in the file. */
  range: readonly [number, number];
}

function namedIn(document: Document.Parsed): Named[] {
  const data = isMap(document.contents) ? document.contents.get('data') : undefined;
  const channels = isSeq(data) ? data.items.map((item) => (isMap(item) ? item.get('source', true) : undefined)) : [];
  return [document.getIn(['model', 'weights'], true), ...channels].flatMap((node) => {
    const text = isScalar(node) ? node.value : undefined;
    if (!isScalar(node) || typeof text !== 'string' || !isHubSource(text) || !node.range) return [];
    return [{ text, range: [node.range[0], node.range[1]] as const }];
  });
}

/** The file, if it names a repository and is within the limits. */
const parsedIfNaming = (text: string): Document.Parsed | undefined =>
  /\bhf:/.test(text) && text.length <= MAX_CHARACTERS.runFile && !isTooDeep(text)
    ? parseDocument(text, OPTIONS)
    : undefined;

/** Models and data sets of a hub that a run file or its `--set` overrides name. */
export function namedHubSources(text: string, overrides: readonly string[] = []): string[] {
  const document = parsedIfNaming(text);
  return sourcesOf(document ? namedIn(document) : [], overrides);
}

function sourcesOf(inFile: readonly Named[], overrides: readonly string[]): string[] {
  const given = overrides.flatMap((one) => HUB_OVERRIDE.exec(one)?.[2] ?? []);
  return [...new Set([...inFile.map((one) => one.text), ...given])].filter((one) => parseHubSource(one) !== undefined);
}

/** Replaces revisions by fetched commits, and inserts the config.json of a model where the file describes none. */
export function inlineHub(text: string, overrides: readonly string[], fetched: FetchedCommits): InlinedRun {
  const pinned = (source: string): string => {
    const [parsed, found] = [parseHubSource(source), fetched[source]];
    return parsed && found ? hubSourceText({ ...parsed, revision: found.commit }) : source;
  };
  const document = parsedIfNaming(text);
  const places = document ? namedIn(document) : [];
  const replaced = places
    .toSorted((a, b) => b.range[0] - a.range[0])
    .reduce(
      (done, { text: source, range: [from, to] }) =>
        `${done.slice(0, from)}${JSON.stringify(pinned(source))}${done.slice(to)}`,
      text,
    );
  const given = overrides.map((one) => one.replace(HUB_OVERRIDE, (_, path, source) => `${path}=${pinned(source)}`));
  const config = sourcesOf(places, overrides)
    .flatMap((source) => fetched[source]?.config ?? [])
    .at(0);
  const isDescribed =
    ['preset', 'config', 'architecture'].some((key) => document?.hasIn(['model', key])) ||
    overrides.some((one) => /^\s*model\.(preset|config|architecture)\b/.test(one));
  return config === undefined || isDescribed
    ? { text: replaced, overrides: given }
    : inlineConfig(replaced, given, config);
}
