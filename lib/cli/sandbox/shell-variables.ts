import { UNSET_FOR_CLIENTS } from '../../sandbox/environment';
import { quoted } from '../quoted';

/** Shell lines that point a shell at the embedded AWS, for `eval`. What would win over its credentials is unset. */
export function exportLines(env: Readonly<Record<string, string>>): string[] {
  return [
    ...unsetForeign(env).map((name) => `unset ${name}`),
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
}

/** Shell lines that take every variable of the embedded AWS out of a shell again. */
export const unsetLines = (env: Readonly<Record<string, string>>): string[] =>
  Object.keys(env).map((name) => `unset ${name}`);

/** Names that a shell must not keep beside these variables. */
export const unsetForeign = (env: Readonly<Record<string, string>>): string[] =>
  UNSET_FOR_CLIENTS.filter((name) => !(name in env));
