import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm';
import { descriptorParameter } from '../../contracts/launcher';
import type { Descriptor } from '../../spec/descriptor';
import { loadDescriptor } from '../../spec/load';
import { remember } from './remember';

/** A deploy changes a descriptor; until then every run of a team has the same one. */
export const CACHE_MS = 60_000;
/** The same text is read by every process at every deploy only once. */
const parse = remember((text) => loadDescriptor(text), 50);

interface DescriptorDeps {
  ssm: SSMClient;
  environment: string;
  now(): Date;
}

/** One cache a client: it lives as long as the process. */
const caches = new WeakMap<SSMClient, Map<string, { descriptor: Descriptor; at: number }>>();

/** The descriptor of the day for one team, at most a minute old. Throws when the parameter is missing or no descriptor. */
export async function readDescriptor({ ssm, environment, now }: DescriptorDeps, team: string): Promise<Descriptor> {
  const Name = descriptorParameter(environment, team);
  const cache = caches.get(ssm) ?? new Map<string, { descriptor: Descriptor; at: number }>();
  caches.set(ssm, cache);
  const known = cache.get(Name);
  const at = now().getTime();
  if (known && Math.abs(at - known.at) < CACHE_MS) return known.descriptor;
  const descriptor = await fetchDescriptor(ssm, Name);
  cache.set(Name, { descriptor, at });
  return descriptor;
}

async function fetchDescriptor(ssm: SSMClient, Name: string): Promise<Descriptor> {
  const { Parameter } = await ssm.send(new GetParameterCommand({ Name }));
  const { value, issues } = parse(Parameter?.Value ?? '');
  if (!value) throw new Error(`SSM parameter ${Name} is no descriptor: ${issues.map((i) => i.message).join('; ')}`);
  return value;
}
