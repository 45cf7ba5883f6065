import { beforeEach, describe, expect, test } from 'vitest';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
let llama: string;
let tokens: string;
beforeEach(async () => {
  world = fakeWorld();
  llama = await world.launch(`${RUN_FILE}tags: { project: llama, sweep: "1" }\npreemptible: true\n`);
  world.pass(1000);
  tokens = await world.launch(RUN_FILE.replace('name: pretrain', 'name: tokens').concat(`after: [${llama}]\n`));
});

const found = async (wanted: object) => {
  const answer = (await world.ask({ action: 'list', ...wanted })) as { runs: StatusAnswer[] };
  return answer.runs.map(({ runId }) => runId);
};

describe('list', () => {
  test('by state, by tag, by text, and by all of them', async () => {
    expect(await found({})).toEqual([tokens, llama]);
    expect(await found({ states: ['queued'] })).toEqual([tokens]);
    expect(await found({ tags: ['project=llama'] })).toEqual([llama]);
    expect(await found({ tags: ['project', 'sweep=1'] })).toEqual([llama]);
    expect(await found({ tags: ['project=gemma'] })).toEqual([]);
    expect(await found({ search: 'TOKENS' })).toEqual([tokens]);
    expect(await found({ search: 'llama', states: ['completed'] })).toEqual([]);
  });

  test('a limit holds for what was found, not for what was looked at', async () => {
    expect(await found({ tags: ['project'], limit: 1 })).toEqual([llama]);
    expect(await found({ limit: 1 })).toEqual([tokens]);
  });

  test('finds a live run that is older than all that are searched', async () => {
    world.end(`research-${llama}-a001`, 'Failed', 'ClientError: bad request');
    await world.tick();
    world.store.ofTeam = async () => [];
    expect(await found({ states: ['queued', 'running'] })).toEqual([tokens]);
    expect(await found({ search: 'tokens' })).toEqual([tokens]);
  });

  test('says tags, what a run waits for, and whether it is preemptible', async () => {
    const { runs } = (await world.ask({ action: 'list' })) as { runs: StatusAnswer[] };
    expect(runs[1]).toMatchObject({ tags: { project: 'llama', sweep: '1' }, preemptible: true });
    expect(runs[0]).toMatchObject({ after: [llama] });
    expect(runs[0]).not.toHaveProperty('tags');
    expect(runs[0]).not.toHaveProperty('preemptible');
  });
});

describe('a note', () => {
  test('is found, stands in the timeline, and another one takes its place', async () => {
    expect(await world.ask({ action: 'note', runId: llama, text: 'first try' })).toEqual({
      ok: true,
      runId: llama,
      note: 'first try',
    });
    await world.ask({ action: 'note', runId: llama, text: 'Diverged at 400' });
    expect(await found({ search: 'diverged' })).toEqual([llama]);
    expect(await found({ search: 'first try' })).toEqual([]);
    expect(await world.ask({ action: 'status', runId: llama })).toMatchObject({ note: 'Diverged at 400' });
    const notes = (await world.store.timeline(llama)).filter(({ what }) => what === 'note-written');
    expect(notes.map(({ text }) => text)).toEqual(['first try', 'Diverged at 400']);
  });

  test('comes with the launch', async () => {
    const started = await world.ask({
      action: 'start',
      runFile: RUN_FILE,
      clientRequestId: 'n',
      note: 'baseline',
      runId: 'noted',
    });
    expect(started).toMatchObject({ ok: true });
    expect(await found({ search: 'baseline' })).toEqual(['noted']);
  });

  test("fails: another team's run", async () => {
    const answer = await world.ask(
      { action: 'note', runId: llama, text: 'x' },
      ALIAS.replace(/team-.*/, 'team-speech'),
    );
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
  });
});

test('the configuration is what the run was launched with, without its secret', async () => {
  const answer = (await world.ask({ action: 'status', runId: llama, configuration: true })) as StatusAnswer;
  expect(answer.configuration).toMatchObject({
    spec: { name: 'pretrain', compute: { instanceCount: 2 }, training: { seed: expect.any(Number) } },
    codeSha256: null,
    driverHash: '0f3a9c',
    trainingImageUri: expect.stringContaining('@sha256:'),
  });
  expect(JSON.stringify(answer)).not.toContain('a'.repeat(64));
  expect(await world.ask({ action: 'status', runId: llama })).not.toHaveProperty('configuration');
});
