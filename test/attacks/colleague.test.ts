// A colleague with a researcher's credentials and the alias of their own team, who writes nothing but run files.
import { describe, expect, test } from 'vitest';
import { admitRuns } from '../../lib/control/reconcile/admit-runs';
import { ALIAS, type FakeWorld, fakeWorld, MINUTE, RUN_FILE } from '../control/support/fake-world';

const OTHER = ALIAS.replace('team-nlp', 'team-speech');
let requests = 0;

/** Starts and confirms a run through the alias of a team. */
async function start(world: FakeWorld, runFile: string, alias = ALIAS) {
  requests += 1;
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: `colleague-${requests}` }, alias);
  if (!answer.ok || !('runId' in answer)) return { refused: 'issues' in answer ? answer.issues : [] };
  await world.ask({ action: 'start', runId: answer.runId, confirm: true }, alias);
  world.pass(2000);
  return { runId: answer.runId };
}

/** A run of that name that has completed. */
async function complete(world: FakeWorld, name: string, alias = ALIAS): Promise<void> {
  const { runId } = await start(world, named(name), alias);
  await world.settle();
  world.end(`research-${runId}-a001`, 'Completed');
  await world.tick();
}

const named = (name: string, more = '') => `${RUN_FILE.replace('pretrain', name)}${more}`;

describe('`after: latest:<name>`', () => {
  test('waits for a run of the own team, whatever runs of that name another team has', async () => {
    const world = fakeWorld();
    await complete(world, 'prepare', OTHER);
    await start(world, named('bait', 'after: [latest:prepare]\n'), OTHER);
    const { runId = '' } = await start(world, named('train', 'after: [latest:prepare]\n'));
    for (let i = 0; i < 3; i++) await world.tick();
    expect(await world.store.find(runId)).toMatchObject({ state: 'queued', reason: 'waits for latest:prepare' });
  });

  test('of a run with that name waits for the one before it, although others wait for the newest', async () => {
    const world = fakeWorld();
    await complete(world, 'nightly');
    await start(world, named('report', 'after: [latest:nightly]\n'));
    const { runId = '' } = await start(world, named('nightly', 'after: [latest:nightly]\n'));
    for (let i = 0; i < 2; i++) await world.tick();
    expect(world.sagemaker.jobs.has(`research-${runId}-a001`)).toBe(true);
  });

  test('finds the run of that name behind more newer runs than one page of the listing has', async () => {
    const world = fakeWorld();
    await complete(world, 'prepare');
    const { runId: waiting = '' } = await start(world, named('f', 'after: [latest:never]\n'));
    world.copyRun(waiting, 200);
    expect((await world.store.ofTeam('nlp', 1000)).length).toBe(202);
    world.pass(1000);
    const { runId = '' } = await start(world, named('train', 'after: [latest:prepare]\n'));
    await world.tick();
    expect(world.sagemaker.jobs.has(`research-${runId}-a001`)).toBe(true);
  });

  test('of many names keeps no other run waiting: one listing of a team serves all', async () => {
    const world = fakeWorld();
    const names = (from: number) => Array.from({ length: 50 }, (_, i) => `latest:n${from + i}`).join(', ');
    for (let i = 0; i < 10; i++) await start(world, named(`w${i}`, `after: [${names(50 * i)}]\n`), OTHER);
    let listings = 0;
    const real = world.store.pagesOfTeam.bind(world.store);
    world.store.pagesOfTeam = (...args) => {
      listings += 1;
      return real(...args);
    };
    await admitRuns(world.reconcile);
    expect(listings).toBe(1);
  });

  test('of more names than a run may wait for is refused', async () => {
    const names = Array.from({ length: 51 }, (_, i) => `latest:n${i}`).join(', ');
    const { refused } = await start(fakeWorld(), named('many', `after: [${names}]\n`));
    expect(refused?.map(({ path }) => path)).toEqual(['after']);
  });
});

describe('a flood of runs', () => {
  test('is not read all at once: each may have a file of 200 KB', async () => {
    const world = fakeWorld();
    for (let i = 0; i < 60; i++) await start(world, named(`f${i}`), OTHER);
    let [reading, most] = [0, 0];
    const real = world.store.findIntent.bind(world.store);
    world.store.findIntent = async (runId) => {
      reading += 1;
      most = Math.max(most, reading);
      await Promise.resolve();
      const found = await real(runId);
      reading -= 1;
      return found;
    };
    await admitRuns(world.reconcile);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(20);
  });

  test('of one team ends at a limit of the team, and another team starts as before', async () => {
    const world = fakeWorld();
    const first = (await start(world, named('first'), OTHER)).runId ?? '';
    world.copyRun(first, 1999);
    expect((await world.store.active()).length).toBe(2000);
    const { refused } = await start(world, named('one-more'), OTHER);
    expect(refused?.map(({ rule }) => rule)).toEqual(['guardrails/live-runs']);
    expect((await start(world, named('theirs'))).runId).toBeDefined();
  });

  test('with a request id of another team gets runs of its own', async () => {
    const world = fakeWorld();
    const ask = (alias: string) =>
      world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId: 'same-request' }, alias);
    const ours = await ask(ALIAS);
    world.pass(MINUTE);
    const theirs = await ask(OTHER);
    expect(ours).toMatchObject({ ok: true });
    expect(theirs).toMatchObject({ ok: true });
    expect('runId' in theirs && 'runId' in ours && theirs.runId !== ours.runId).toBe(true);
  });
});
