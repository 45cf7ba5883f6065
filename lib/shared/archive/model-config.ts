import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type InlinedRun, inlineConfig, namedConfig } from '../../core/config/inline-config';

/** A config.json in S3, with the URI under which the run file names it. */
export interface FetchedConfig {
  uri: string;
  text: string;
}

/**
 * Inserts the content of a config.json beside the run file in place of its name. If the file cannot be read the name stays, which a rule
 * rejects; the same applies to an S3 URI, unless its content has been downloaded.
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
