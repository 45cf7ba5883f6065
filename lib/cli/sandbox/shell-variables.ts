import { UNSET_FOR_CLIENTS } from '../../sandbox/environment';
import { quoted } from '../terminal';

/** Shell lines for `eval` that direct a shell to the embedded AWS. Variables that would take precedence over its credentials are unset. */
export function exportLines(env: Readonly<Record<string, string>>): string[] {
  return [
    ...unsetForeign(env).map((name) => `unset ${name}`),
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
}

/** Shell lines that remove every variable of the embedded AWS from a shell. */
export const unsetLines = (env: Readonly<Record<string, string>>): string[] =>
  Object.keys(env).map((name) => `unset ${name}`);

/** Unsets variables that must not be set together with these. */
export const unsetForeign = (env: Readonly<Record<string, string>>): string[] =>
  UNSET_FOR_CLIENTS.filter((name) => !(name in env));
