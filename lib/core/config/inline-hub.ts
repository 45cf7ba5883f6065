import { type Document, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { hubSourceText, isHubSource, parseHubSource } from './formats/hub-source';
import { type InlinedRun, inlineConfig } from './inline-config';
import { MAX_CHARACTERS } from './reading/limits';
import { isTooDeep } from './reading/yaml-levels';

/** A commit that was fetched, and the config.json of a model. */
export interface FetchedCommit {
  commit: string;
  config?: string;
}

/** Fetched commits by the source that a run file names. */
export type FetchedCommits = Readonly<Record<string, FetchedCommit>>;

const OVERRIDE = /^\s*(model\.weights|data\[\d+\]\.source)\s*=\s*(hf:\S+)\s*$/;

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
    ? parseDocument(text, { uniqueKeys: false })
    : undefined;

/** Models and data sets of a hub that a run file or its `--set` overrides name. */
export function namedHubSources(text: string, overrides: readonly string[] = []): string[] {
  const document = parsedIfNaming(text);
  return sourcesOf(document ? namedIn(document) : [], overrides);
}

function sourcesOf(inFile: readonly Named[], overrides: readonly string[]): string[] {
  const given = overrides.flatMap((one) => OVERRIDE.exec(one)?.[2] ?? []);
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
  const given = overrides.map((one) => one.replace(OVERRIDE, (_, path, source) => `${path}=${pinned(source)}`));
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
