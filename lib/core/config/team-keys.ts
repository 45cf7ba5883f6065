import type { Descriptor } from './descriptor';
import type { EnvironmentSpec } from './environment-file';

/** Teams with a key of their own: `own`, or the ARN of an existing key. */
export const teamKeysOf = (teams: EnvironmentSpec['teams']): Record<string, string> =>
  Object.fromEntries(
    Object.entries(teams).flatMap(([team, { kmsKey = 'shared' }]) => (kmsKey === 'shared' ? [] : [[team, kmsKey]])),
  );

/** Key for the output of a job; undefined: the default of the service. */
export const writingKey = ({
  teamKeyArn,
  kmsKeyArn,
}: Pick<Descriptor, 'kmsKeyArn' | 'teamKeyArn'>): string | undefined => teamKeyArn ?? kmsKeyArn;
