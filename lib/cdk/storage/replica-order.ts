import type { IConstruct } from 'constructs';
import type { EnvironmentSpec } from '../../core/config/environment-file';

/** The stack of an environment in a Region, with the inputs for the order of deploys. */
interface PlacedStack {
  readonly stack: { readonly storage: IConstruct };
  readonly spec: Pick<EnvironmentSpec, 'name' | 'region'> & {
    readonly storage: Pick<EnvironmentSpec['storage'], 'replicateCheckpoints'>;
  };
}

/**
 * Makes each stack depend on the stack that owns the bucket for its checkpoint copies, so that it is deployed after and destroyed before
 * it: S3 rejects a replication rule for a bucket that does not exist. Regions that replicate to each other cannot depend on each other.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketReplication.html, 2026-11-23.
 */
export function orderReplicas(placed: readonly PlacedStack[]): void {
  for (const one of placed) {
    const target = targetOf(one, placed);
    // A dependency between constructs of two stacks, which the CDK turns into one between the stacks.
    if (target && !leadsTo(target, one, placed)) one.stack.storage.node.addDependency(target.stack.storage);
  }
}

/** Undefined when nothing is replicated, or when none of the stacks creates the destination. */
function targetOf({ spec }: PlacedStack, placed: readonly PlacedStack[]): PlacedStack | undefined {
  const { name, storage } = spec;
  const to = storage.replicateCheckpoints;
  if (!to || to.bucket !== undefined) return undefined;
  return placed.find((other) => other.spec.name === name && other.spec.region === to.region);
}

function leadsTo(from: PlacedStack, end: PlacedStack, placed: readonly PlacedStack[]): boolean {
  const seen = new Set<PlacedStack>();
  for (let next: PlacedStack | undefined = from; next && !seen.has(next); next = targetOf(next, placed)) {
    if (next === end) return true;
    seen.add(next);
  }
  return false;
}
