import { expect, test } from 'vitest';
import { CallFaults, Kills } from '../../tools/simulation/core/call-faults';
import { VirtualClock } from '../../tools/simulation/core/clock';
import { type Ending, LambdaFunction } from '../../tools/simulation/core/functions';
import { Gateway } from '../../tools/simulation/core/gateway';
import type { Fault } from '../../tools/simulation/scenario/schema';

class Client {
  declare send: (command: object) => Promise<unknown>;
}
class FindCommand {
  readonly input = {};
  readonly schema = [9, 'table', 'Find'];
}

/** A reconcile function with one client of a service that answers at once; `reached` counts the calls that came to the service. */
function functionWith(...faults: Fault[]) {
  const clock = new VirtualClock();
  const gateway = new Gateway(clock, 1, { faults: new CallFaults(faults), kills: new Kills(faults), rates: {} });
  const seen = { reached: 0, endings: [] as Ending['kind'][] };
  gateway.add('table', { Find: { latencyMs: 5, run: () => ++seen.reached } });
  const reconcile = new LambdaFunction('reconcile', clock, {
    timeoutSeconds: 60,
    makeDeps: (slot) => ({ table: gateway.client(Client, 'table', {}, slot), sleep: (ms: number) => clock.sleep(ms) }),
    nextId: () => 1,
  });
  const invoke = (handle: Parameters<typeof reconcile.invoke>[0]) =>
    reconcile.invoke(handle, ({ kind }) => seen.endings.push(kind));
  return { clock, invoke, seen };
}

test('an invocation that dies at the first of two parallel calls makes neither', async () => {
  const { clock, invoke, seen } = functionWith({ kill: 'reconcile', afterEffect: 0 });
  invoke(({ table }) => Promise.all([table.send(new FindCommand()), table.send(new FindCommand())]));
  await clock.runUntil(1000);
  expect(seen).toEqual({ reached: 0, endings: ['died'] });
});

test('what is left of an invocation that has ended calls nobody any more', async () => {
  const { clock, invoke, seen } = functionWith();
  invoke(({ table, sleep }) => {
    void sleep(100).then(() => table.send(new FindCommand()));
    return Promise.reject(new Error('one branch of two failed'));
  });
  await clock.runUntil(1000);
  expect(seen).toEqual({ reached: 0, endings: ['error'] });
});

test('a clock that is started by a timer of the process waits for what an event lets go on', async () => {
  const clock = new VirtualClock();
  const seen: string[] = [];
  clock.schedule(1, () => {
    clock.wake();
    const steps = async () => {
      for (let step = 0; step < 5; step++) await undefined;
      seen.push('went on');
    };
    void steps();
  });
  clock.schedule(2, () => seen.push('next event'));
  await new Promise<void>((done) => setImmediate(() => clock.runUntil(10).then(done)));
  expect(seen).toEqual(['went on', 'next event']);
});
