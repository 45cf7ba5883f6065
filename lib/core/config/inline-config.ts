import { type Document, isMap, isScalar, parseDocument } from 'yaml';
import { isConfigText } from './model-config';
import { MAX_CHARACTERS } from './reading/limits';
import { isTooDeep } from './reading/yaml-levels';

/** A run file whose `model.config` contains the text of the config.json, so that its readers need no second file. */
export interface InlinedRun {
  text: string;
  overrides: string[];
}

/** Those who read the run file report keys that it has twice, in less time. */
const OPTIONS = { uniqueKeys: false };
const OVERRIDE = /^\s*model\.config\s*=/;

/** The file that `model.config` names in a run file or its `--set` overrides; undefined when it names none. */
export function namedConfig(text: string, overrides: readonly string[] = []): string | undefined {
  const override = overrides.filter((one) => OVERRIDE.test(one)).at(-1);
  if (override !== undefined) return onlyName(override.replace(OVERRIDE, '').trim());
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

/** Replaces the name of the config.json by its text. The line numbers of the run file do not change. */
export function inlineConfig(text: string, overrides: readonly string[], config: string): InlinedRun {
  const others = overrides.filter((one) => !OVERRIDE.test(one));
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
