import { GetParameterCommand, type SSMClient } from '@aws-sdk/client-ssm';
import type { Descriptor } from '../../core/config/descriptor';
import { loadDescriptor } from '../../core/config/load';
import { descriptorParameter } from '../../core/contracts/launcher';
import { remember } from './bounded-map';

/** A descriptor changes only with a deploy; until then all runs of a team share it. */
export const CACHE_MS = 60_000;
/** Each process parses the same text only once. */
const parseDescriptor = remember((text) => loadDescriptor(text), 50);

interface DescriptorDeps {
  ssm: SSMClient;
  environment: string;
  now(): Date;
}

/** One cache per client, with the lifetime of the process. Times are epoch milliseconds. */
const caches = new WeakMap<SSMClient, Map<string, { descriptor: Descriptor; at: number }>>();

/** The current descriptor of a team, at most a minute old. Throws when the parameter is missing or is not a descriptor. */
export async function readDescriptor({ ssm, environment, now }: DescriptorDeps, team: string): Promise<Descriptor> {
  const at = now().getTime();
  const Name = descriptorParameter(environment, team);
  const cache = caches.get(ssm) ?? new Map<string, { descriptor: Descriptor; at: number }>();
  caches.set(ssm, cache);
  const known = cache.get(Name);
  // A clock may also be put back.
  if (known && Math.abs(at - known.at) < CACHE_MS) return known.descriptor;
  const { Parameter } = await ssm.send(new GetParameterCommand({ Name }));
  const { value, issues } = parseDescriptor(Parameter?.Value ?? '');
  if (!value) throw new Error(`SSM parameter ${Name} is no descriptor: ${issues.map((i) => i.message).join('; ')}`);
  cache.set(Name, { descriptor: value, at });
  return value;
}
