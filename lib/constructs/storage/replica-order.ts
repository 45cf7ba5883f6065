import type { IConstruct } from 'constructs';
import type { EnvironmentSpec } from '../../spec/environment-file';

/** The stack of an environment in a Region, and what the order of deploys depends on. */
interface PlacedStack {
  readonly stack: { readonly storage: IConstruct };
  readonly spec: Pick<EnvironmentSpec, 'name' | 'region'> & {
    readonly storage: Pick<EnvironmentSpec['storage'], 'replicateCheckpoints'>;
  };
}

/**
 * Lets each stack wait for the one whose bucket its checkpoints are copied to, and be destroyed before it: S3 takes no replication rule towards a
 * bucket that is not there. Regions that copy to each other cannot wait for each other.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketReplication.html, 2026-11-23.
 */
export function orderReplicas(placed: readonly PlacedStack[]): void {
  for (const one of placed) {
    const target = targetOf(one, placed);
    // Between constructs of two stacks: the CDK makes it a dependency of the stacks.
    if (target && !leadsTo(target, one, placed)) one.stack.storage.node.addDependency(target.stack.storage);
  }
}

/** Undefined where nothing is copied, or to a bucket that none of the stacks makes. */
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
