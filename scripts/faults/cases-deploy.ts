import { createHash } from 'node:crypto';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { type Handler, handlersOf, type ResourceEvent, send } from './custom-resources';
import { expectEqual, type FaultCase, remember, type Seen } from './fault-case';
import type { World } from './world';

const INVENTED = 'slipway-faults-Guard-1ABCDEFGHIJKL';

function named(handlers: readonly Handler[], type: string, guards?: string): Handler {
  const found = handlers.find(
    (h) => h.resourceType === type && (guards === undefined || h.properties.guards === guards),
  );
  if (!found) throw new Error(`the stack has no ${type} ${guards ?? ''}`);
  return found;
}

async function driverFiles(world: World): Promise<string[]> {
  const { Contents = [] } = await world.s3.send(
    new ListObjectsV2Command({ Bucket: world.artifactBucket, Prefix: 'drivers/' }),
  );
  return Contents.map((c) => `${c.Key} ${c.ETag}`).sort();
}

/** A deletion with an id that no creation ever gave, as CloudFormation sends it when the answer of the creation was lost. */
async function deleteWithInventedIds(world: World, seen: Seen, handlers: readonly Handler[]): Promise<void> {
  const before = await driverFiles(world);
  for (const handler of handlers.filter((h) => h.properties.guards !== 'delete')) {
    const ResourceProperties = { ...handler.properties, guards: 'replace', environment: 'faults', fingerprint: 'new' };
    const answer = await send(world, handler, {
      RequestType: 'Delete',
      PhysicalResourceId: INVENTED,
      ResourceProperties,
    });
    expectEqual(`deletion of ${handler.resourceType} with an invented id`, answer.refused, undefined);
    seen.lines.push(`Delete ${INVENTED} of ${handler.resourceType}: answered, nothing deleted`);
  }
  expectEqual('driver files', await driverFiles(world), before);
}

/** The deletion of the stack, and an update that replaces the role, while a run is live. */
async function guardsHold(world: World, seen: Seen, handlers: readonly Handler[]): Promise<void> {
  const guard = named(handlers, 'Custom::SlipwayGuard', 'delete');
  const gone = await send(world, guard, {
    RequestType: 'Delete',
    PhysicalResourceId: 'delete-guard-faults',
    ResourceProperties: { guards: 'delete', environment: 'faults' },
  });
  expectRefused(seen, 'Delete of the stack', gone.refused);
  const replace = named(handlers, 'Custom::SlipwayGuard', 'replace');
  const zones = ['usw2-az1', 'usw2-az2'];
  const listed = JSON.stringify(zones);
  // A stack of version 0.2.0, whose id contains what its template says.
  const of020 = { environment: 'faults', teams: '["d25"]', zones: listed, storage: 'retained', movedSubnets: listed };
  const properties = (fingerprint: string) => ({ guards: 'replace', ...of020, fingerprint });
  const all = JSON.stringify(['old', ['d25'], zones, 'retained', zones]);
  const deployed = `replace-guard-faults-${createHash('sha256').update(all).digest('hex').slice(0, 16)}`;
  const forward: ResourceEvent = {
    RequestType: 'Update',
    PhysicalResourceId: deployed,
    ResourceProperties: properties('new'),
    OldResourceProperties: properties('old'),
  };
  expectRefused(seen, 'Update that replaces', (await send(world, replace, forward)).refused);
  const back = await send(world, replace, {
    ...forward,
    ResourceProperties: properties('old'),
    OldResourceProperties: properties('new'),
  });
  expectEqual('the way back after a refused update', [back.refused, back.id], [undefined, deployed]);
  seen.lines.push('Update back to what is deployed: answered');
}

function expectRefused(seen: Seen, what: string, reason: string | undefined): void {
  if (!reason?.includes('must not hit live runs')) throw new Error(`${what}: must be refused, got ${reason}`);
  seen.lines.push(`${what}: ${reason}`);
}

/** A creation whose answer was lost is sent again, and properties of older and newer templates come along. */
async function repeatedAndForeign(world: World, seen: Seen, handlers: readonly Handler[]): Promise<void> {
  const preflight = named(handlers, 'Custom::SlipwayQuotaPreflight');
  // As every scalar arrives: text; with a property that this version does not know.
  const ResourceProperties = {
    environment: 'faults',
    needs: '[]',
    enforce: 'fail',
    requestIncrease: 'false',
    ofANewerVersion: '1',
  };
  const create: ResourceEvent = { RequestType: 'Create', ResourceProperties };
  const [first, again] = [await send(world, preflight, create), await send(world, preflight, create)];
  expectEqual('a repeated creation', [again.id, again.refused], [first.id, undefined]);
  const update = await send(world, preflight, {
    RequestType: 'Update',
    PhysicalResourceId: first.id,
    ResourceProperties,
    OldResourceProperties: { environment: 'faults' },
  });
  expectEqual('an update from a template with fewer properties', [update.id, update.refused], [first.id, undefined]);
  const broken = await send(world, preflight, { RequestType: 'Create', ResourceProperties: { enforce: 'perhaps' } });
  for (const name of ['environment', 'needs', 'enforce'])
    if (!broken.refused?.includes(name)) throw new Error(`must name ${name}, got ${broken.refused}`);
  seen.lines.push(`Create twice: ${first.id} both times`, `Create with broken properties: ${broken.refused}`);
}

export const DEPLOY_CASES: readonly FaultCase[] = [
  {
    n: 25,
    name: 'custom-resources',
    injected:
      'recorded events of CloudFormation to the deployed handlers under a live run: deletions with invented ids, repeated creation, refused update and its rollback, properties of other versions',
    // The guard of the deletion closes the environment until it has looked: nothing could start or resume beside it.
    alone: true,
    async run(world, seen) {
      const id = 'd25-live';
      await world.launch(id, { env: { STEPS: '400', STEP_SECONDS: '0.2' } });
      await world.until(id, (s) => s.state === 'running');
      const handlers = await handlersOf(world);
      seen.lines.push(`handlers: ${handlers.map((h) => h.resourceType).join(', ')}`);
      await deleteWithInventedIds(world, seen, handlers);
      await guardsHold(world, seen, handlers);
      await repeatedAndForeign(world, seen, handlers);
      const status = await world.status(id);
      expectEqual('state of the run', status.state, 'running');
      expectEqual('jobs', await world.jobStatuses(id), ['InProgress']);
      await world.slipway('stop', id);
      const stopped = await world.over(id);
      remember(seen, stopped);
      expectEqual('after stop', stopped.state, 'stopped');
    },
  },
];
