import type { GuardProperties } from '../../core/contracts/custom-resources';

/** A change of an update that would affect live runs. */
export interface Change {
  /** Subject of the error message. */
  what: string;
  /** Teams whose runs are affected. @default - all runs are affected */
  teams?: readonly string[];
}

/**
 * The change of an update that would affect live runs; undefined when there is none. Throws for a change that cannot succeed even without
 * live runs: CloudFormation would fail halfway, or delete data.
 */
export function changeOf(old: GuardProperties, now: GuardProperties): Change | undefined {
  requireStorage(old, now);
  requireSubnets(old, now);
  requireRepository(old, now);
  requireKey(old, now);
  requireTeamKeys(old, now);
  const isSame = old.storage ? old.fingerprint === now.fingerprint : isAsBefore(old, now);
  if (!isSame) return { what: 'this update, which replaces role, network or key,' };
  const zones = gone(old.zones, now.zones);
  if (zones.length > 0) return { what: `this update, which removes ${listed('zone', zones)},` };
  return changeOfTeams(old, now);
}

/**
 * Live jobs of a removed team would lose their role. Live jobs of a team that gets its first key of its own know only the environment's
 * key, which they may no longer use after the update.
 */
function changeOfTeams(old: GuardProperties, now: GuardProperties): Change | undefined {
  const removed = gone(old.teams, now.teams);
  const keyed = gone(Object.keys(now.teamKeys ?? {}), Object.keys(old.teamKeys ?? {})).filter((team) =>
    old.teams?.includes(team),
  );
  const deeds = [
    ...(removed.length > 0 ? [`removes ${listed('team', removed)}`] : []),
    ...(keyed.length > 0 ? [`gives ${listed('team', keyed)} another key (teams.<team>.kmsKey)`] : []),
  ];
  if (deeds.length === 0) return undefined;
  return { what: `this update, which ${deeds.join(' and ')},`, teams: [...removed, ...keyed] };
}

/** Version 0.1.0 computed one fingerprint over all properties, so it is compared as a whole. */
const isAsBefore = (old: GuardProperties, now: GuardProperties): boolean =>
  old.fingerprint === now.fingerprint || old.fingerprint === now.previousFingerprint;

function requireStorage(old: GuardProperties, now: GuardProperties): void {
  if (old.storage === 'adopted' && now.storage !== 'adopted')
    throw new Error(
      'storage.adopt: must stay true in an environment that uses what an earlier stack left, got false; its buckets, table and repository exist already and cannot be made',
    );
  if (old.storage === 'deleted' && now.storage === 'adopted')
    throw new Error(
      'storage.adopt: must not be set while retain is false, which deletes key and run table as they leave the template; set retain: true, deploy, then adopt: true',
    );
}

function requireSubnets(old: GuardProperties, now: GuardProperties): void {
  const { movedSubnets: zones = [] } = now;
  if (old.storage || zones.length === 0) return;
  throw new Error(
    `network.subnetOrder: must say in which order version 0.1.0 numbered the zones, whose subnets would move otherwise, got none; write subnetOrder: [${zones.join(', ')}] (the order of that deploy) to keep them, or subnetOrder: [] to move into a new VPC`,
  );
}

/** ECR cannot change the encryption of a repository, and a second repository of the same name cannot be created. */
function requireRepository(old: GuardProperties, now: GuardProperties): void {
  const made = old.repository ?? 'aes256';
  if (made === 'none' || !now.repository || now.repository === 'none' || now.repository === made) return;
  throw new Error(
    `image.encryption: must stay ${made}, with which the repository of the environment was made, got ${now.repository}; write image: { encryption: ${made} }, or move to a new repository as docs/environment.md says`,
  );
}

/** Stored objects stay encrypted with the key with which they were written, and the roles may use only one key. */
function requireKey(old: GuardProperties, now: GuardProperties): void {
  if (old.keyArn === now.keyArn) return;
  const made = 'the key that the stack made (leave the option out)';
  throw new Error(
    `storage.kmsKeyArn: must stay ${old.keyArn ?? made}, with which what is stored is encrypted, got ${now.keyArn ?? 'none'}; take the change back, or use the other key in a new environment`,
  );
}

/**
 * When the stack adopts existing storage, the key that an earlier stack created must be given by its ARN, so a change from `own` to an ARN
 * is accepted there.
 */
function requireTeamKeys(old: GuardProperties, now: GuardProperties): void {
  for (const [team, had] of Object.entries(old.teamKeys ?? {})) {
    const key = now.teamKeys?.[team] ?? 'shared';
    const isKept = key === had || (had === 'own' && key.startsWith('arn:') && now.storage === 'adopted');
    if (isKept || !(now.teams ?? []).includes(team)) continue;
    throw new Error(
      `teams.${team}.kmsKey: must stay ${had}, with which what the team has stored is encrypted, got ${key}; take the change back, or give the data to a new team`,
    );
  }
}

const gone = (old: readonly string[] = [], now: readonly string[] = []): string[] =>
  old.filter((name) => !now.includes(name));

const listed = (kind: string, names: readonly string[]): string =>
  `${kind}${names.length > 1 ? 's' : ''} ${names.join(', ')}`;
