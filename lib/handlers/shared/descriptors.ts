import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm';
import { descriptorParameter } from '../../contracts/launcher';
import type { Descriptor } from '../../spec/descriptor';
import { loadDescriptor } from '../../spec/load';
import { remember } from './remember';

/** A deploy changes a descriptor; until then every run of a team has the same one. */
export const CACHE_MS = 60_000;
/** The same text is read by every process at every deploy only once. */
export const parseDescriptor = remember((text) => loadDescriptor(text), 50);

interface DescriptorDeps {
  ssm: SSMClient;
  environment: string;
  now(): Date;
}

/** One cache a client: it lives as long as the process. */
const caches = new WeakMap<SSMClient, Map<string, KeptDescriptor>>();

/** The descriptor of the day for one team, at most a minute old. Throws when the parameter is missing or no descriptor. */
export async function readDescriptor(deps: DescriptorDeps, team: string): Promise<Descriptor> {
  const at = deps.now().getTime();
  const known = keptDescriptor(deps, team);
  if (known && Math.abs(at - known.at) < CACHE_MS) return known.descriptor;
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
