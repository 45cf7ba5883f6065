import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type InlinedRun, inlineConfig, namedConfig } from '../spec/inline-config';

/**
 * A run file with the config.json beside it put in the place of its name. A file that cannot be read stays a name, which a rule
 * refuses; so does an S3 URI, unless `fetched` is what lies there.
 */
export function withModelConfig(
  file: string,
  text: string,
  overrides: readonly string[] = [],
  fetched?: string,
): InlinedRun {
  const name = namedConfig(text, overrides);
  const config = name === undefined ? undefined : (fetched ?? readBeside(file, name));
  return config === undefined ? { text, overrides: [...overrides] } : inlineConfig(text, overrides, config);
}

function readBeside(file: string, name: string): string | undefined {
  if (name.startsWith('s3://')) return undefined;
  try {
    return readFileSync(path.resolve(path.dirname(file), name), 'utf8');
  } catch {
    return undefined;
  }
}
