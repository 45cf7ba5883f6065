import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type InlinedRun, inlineConfig, namedConfig } from '../spec/inline-config';

/** A config.json in S3, under the name that the run file has for it. */
export interface FetchedConfig {
  uri: string;
  text: string;
}

/**
 * A run file with the config.json beside it put in the place of its name. A file that cannot be read stays a name, which a rule
 * refuses; so does an S3 URI, unless it is the one that was fetched.
 */
export function withModelConfig(
  file: string,
  text: string,
  overrides: readonly string[] = [],
  fetched?: FetchedConfig,
): InlinedRun {
  const name = namedConfig(text, overrides);
  const config = name === undefined ? undefined : configAt(file, name, fetched);
  return config === undefined ? { text, overrides: [...overrides] } : inlineConfig(text, overrides, config);
}

function configAt(file: string, name: string, fetched?: FetchedConfig): string | undefined {
  if (name === fetched?.uri) return fetched.text;
  if (name.startsWith('s3://')) return undefined;
  try {
    return readFileSync(path.resolve(path.dirname(file), name), 'utf8');
  } catch {
    return undefined;
  }
}
