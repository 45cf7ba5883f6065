import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm';
import type { Descriptor } from '../../core/config/descriptor';
import { loadDescriptor } from '../../core/config/load';
import { descriptorParameter } from '../../core/contracts/launcher';
import { remember } from './bounded-map';

/** A descriptor changes only with a deploy; until then all runs of a team share it. */
export const CACHE_MS = 60_000;
/** Each process parses the same text only once. */
export const parseDescriptor = remember((text) => loadDescriptor(text), 50);

interface DescriptorDeps {
  ssm: SSMClient;
  environment: string;
  now(): Date;
}

/** One cache per client, with the lifetime of the process. */
const caches = new WeakMap<SSMClient, Map<string, KeptDescriptor>>();

/** The current descriptor of a team, at most a minute old. Throws when the parameter is missing or is not a descriptor. */
export async function readDescriptor(deps: DescriptorDeps, team: string): Promise<Descriptor> {
  const at = deps.now().getTime();
  const known = keptDescriptor(deps, team);
  if (isRecent(known, at)) return known.descriptor;
  const Name = descriptorParameter(deps.environment, team);
  const { Parameter } = await deps.ssm.send(new GetParameterCommand({ Name }));
  const { value, issues } = parseDescriptor(Parameter?.Value ?? '');
  if (!value) throw new Error(`SSM parameter ${Name} is no descriptor: ${issues.map((i) => i.message).join('; ')}`);
  keepDescriptor(deps, team, { descriptor: value, at });
  return value;
}

/** A descriptor, and when it was read: epoch milliseconds. */
export interface KeptDescriptor {
  descriptor: Descriptor;
  at: number;
}

/** Whether a descriptor was read within a minute of this time: a clock may also be put back. */
export const isRecent = (kept: KeptDescriptor | undefined, now: number): kept is KeptDescriptor =>
  kept !== undefined && Math.abs(now - kept.at) < CACHE_MS;

/** What the process has read of a team last, however old; undefined before the first time. */
export const keptDescriptor = (
  { ssm, environment }: Pick<DescriptorDeps, 'ssm' | 'environment'>,
  team: string,
): KeptDescriptor | undefined => caches.get(ssm)?.get(descriptorParameter(environment, team));

/** Keeps what was read of a team for the other readers of the process. */
export function keepDescriptor(
  { ssm, environment }: Pick<DescriptorDeps, 'ssm' | 'environment'>,
  team: string,
  kept: KeptDescriptor,
): void {
  const cache = caches.get(ssm) ?? new Map<string, KeptDescriptor>();
  caches.set(ssm, cache);
  cache.set(descriptorParameter(environment, team), kept);
}
