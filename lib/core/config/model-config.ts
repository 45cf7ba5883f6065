import type { Config } from '../catalog/model/config-fields';
import { readConfig } from '../catalog/model/read-config';
import type { ModelShape } from '../catalog/model/shape';
import { parseYaml } from './reading/yaml-file';
import type { Finding } from './rule';

/** The result of parsing the text of a config.json in `model.config`. */
export interface ModelConfig {
  /** Absent when there are findings. */
  shape?: ModelShape;
  findings: Finding[];
}

/** Whether `model.config` contains the file itself; otherwise it is a path or an S3 URI. */
export const isConfigText = (config: string): boolean => config.trimStart().startsWith('{');

/** The keys of a config.json as they are written; none of a text that is no config.json. */
export function configKeys(text = ''): Config {
  const { data } = parseYaml(text);
  return typeof data === 'object' && data !== null ? (data as Config) : {};
}

/** Parses the text of a config.json. Each finding contains the key and its line. Never throws. */
export function readModelConfig(text: string): ModelConfig {
  if (!isConfigText(text)) {
    const fix = text.startsWith('s3://')
      ? 'give --environment, whose rights read it'
      : 'give its path from the run file on';
    return refusal({ must: 'must be a config.json that can be read', got: text, fix });
  }
  const { data, issues, positionOf } = parseYaml(text);
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    return refusal({ must: 'must be JSON', got: issues[0]?.message ?? text, fix: 'correct the file' });
  const { shape, problems } = readConfig(data as Record<string, unknown>);
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
