import type { EnvironmentSpec } from './environment-file';

/** Teams with a key of their own: `own`, or the ARN of an existing key. */
export const teamKeysOf = (teams: EnvironmentSpec['teams']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(teams).flatMap(([team, { kmsKey = 'shared' }]) => (kmsKey === 'shared' ? [] : [[team, kmsKey]])),
  );
