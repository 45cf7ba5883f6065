import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { byStep, listCheckpoints, matchesMarker } from '../../../lib/control/reconcile/observe/checkpoints';
import { listFolder } from '../../../lib/control/reconcile/observe/folders';
import { CHECKPOINT_MARKER } from '../../../lib/core/contracts/storage';
import { checkpointKey } from '../../../lib/core/lifecycle/record';
import { draws } from '../../support/draws';
import { fakeS3 } from '../support/fake-s3';

const P = 's3://b/run/';
const marker = (step: number, objects: object[] = [{ key: 'a', bytes: 4 }], more: object = {}) =>
  JSON.stringify({ step, objects, ...more });

test('folders of steps come newest first, by number; others are left out', () => {
  expect(byStep(['step-9/', 'step-10/', 'step-x/', 'other/', 'xstep-1/', 'step-1'])).toEqual(['step-10/', 'step-9/']);
  expect(byStep(['step-99999999999999999999/', 'step-1/'])).toEqual(['step-1/']);
});

test('a listing is relative to its folder, over all pages, and dated by its newest object', async () => {
  const at = (ms: number) => new Date(ms);
  const { client, mock } = fakeS3(() => 0);
  const pages = [
    {
      CommonPrefixes: [{ Prefix: 'run/step-1/' }, {}],
      Contents: [{ Key: 'run/a', Size: 3, LastModified: at(9) }],
      NextContinuationToken: 'more',
    },
    { Contents: [{ Key: 'run/b', LastModified: at(4) }, { Size: 1 }, { Key: 'run/c', Size: 2 }] },
  ];
  mock.on(ListObjectsV2Command).callsFake(({ ContinuationToken: token }) => (token ? pages[1] : pages[0]));
  const { folders, objects, newestWriteAt } = await listFolder(client, P);
  expect(folders).toEqual(['step-1/']);
  expect([...objects]).toEqual([
    ['a', { bytes: 3, writtenAt: 9 }],
    ['b', { bytes: 0, writtenAt: 4 }],
    ['c', { bytes: 2, writtenAt: 0 }],
  ]);
  expect(newestWriteAt).toBe(9);
  mock.on(ListObjectsV2Command).resolves({});
  expect(await listFolder(client, P)).toEqual({ folders: [], objects: new Map(), newestWriteAt: 0 });
});

describe('a search', () => {
  /** Folders by their step: the text of the marker, or null, and an object of four bytes. */
  const search = (folders: Record<number, string | null>, wanted: Parameters<typeof listCheckpoints>[2] = {}) => {
    let now = 0;
    const s3 = fakeS3(() => now);
    for (const [step, text] of Object.entries(folders)) {
      now = 10 * Number(step);
      s3.put(`b/run/step-${step}/a`, 'data');
      if (text !== null) s3.put(`b/run/step-${step}/${CHECKPOINT_MARKER}`, text);
    }
    return { s3, listed: listCheckpoints({ s3: s3.client }, P, wanted) };
  };
  const whole = (...steps: number[]) => Object.fromEntries(steps.map((step) => [step, marker(step)]));

  test('goes on until enough are whole, and dates each by its marker', async () => {
    const { listed } = search({ 1: marker(1), 2: marker(2, undefined, { attempt: 7 }), 3: null }, { enough: 1 });
    expect(await listed).toEqual({
      kind: 'listed',
      committed: [{ uri: `${P}step-2/`, step: 2, attempt: 7 }],
      torn: [],
      newestWriteAt: 30,
      committedAt: { [`${P}step-2/`]: 20 },
    });
  });

  test('looks for three unless it is told otherwise, and does not count those that could not be read', async () => {
    const steps = async (bad?: string[]) => {
      const found = await search(whole(1, 2, 3, 4, 5), { bad }).listed;
      return found.kind === 'listed' && found.committed.map(({ step }) => step);
    };
    expect(await steps()).toEqual([5, 4, 3]);
    expect(await steps([`${P}step-5/@`])).toEqual([5, 4, 3, 2]);
    expect(await search({}).listed).toMatchObject({ committed: [] });
  });

  test('does not read what is known to be whole where it is still the newest, and says nothing of times then', async () => {
    const known = { uri: `${P}step-2/`, step: 2, attempt: null };
    const same = search(whole(1, 2), { known });
    expect(await same.listed).toEqual({ kind: 'listed', committed: [known], torn: [] });
    expect(same.s3.mock.commandCalls(ListObjectsV2Command)).toHaveLength(1);
    expect(await search(whole(2, 3), { known, enough: 1 }).listed).toMatchObject({ committed: [{ step: 3 }] });
    expect(await search(whole(2), { known: null }).listed).toMatchObject({ committedAt: { [known.uri]: 20 } });
  });

  test.each<[string, string, string]>([
    ['no JSON', '{', 'COMMITTED.json cannot be read'],
    ['no step', JSON.stringify({ objects: [] }), 'COMMITTED.json cannot be read'],
    ['half a step', marker(1.5), 'COMMITTED.json cannot be read'],
    ['a step that is too large', marker(1e12), 'COMMITTED.json cannot be read'],
    ['a negative step', marker(-1), 'COMMITTED.json cannot be read'],
    ['no list', JSON.stringify({ step: 1 }), 'COMMITTED.json cannot be read'],
    ['a nameless object', marker(1, [{ bytes: 4 }]), 'COMMITTED.json cannot be read'],
    ['an object without a size', marker(1, [{ key: 'a' }]), 'COMMITTED.json cannot be read'],
    ['another size', marker(1, [{ key: 'a', bytes: 5 }]), '1 objects are missing or have another size (a)'],
    [
      'many that are missing',
      marker(
        1,
        ['b', 'c', 'd', 'e'].map((key) => ({ key, bytes: 0 })),
      ),
      '4 objects are missing or have another size (b, c, d)',
    ],
  ])('takes a marker with %s for torn', async (_, text, why) => {
    expect(await search({ 1: text }).listed).toMatchObject({ committed: [], torn: [{ uri: `${P}step-1/`, why }] });
  });
});

test.each([
  ['*.pt', 'a.pt', true],
  ['*.pt', 'apt', false],
  ['*.pt', 'a.pt.tmp', false],
  ['a*', 'x/a', false],
  ['step*', 'step/1', false],
  ['(a)+', '(a)+', true],
])('the marker %s matches %s: %s', (glob, name, is) => {
  expect(matchesMarker(glob, name)).toBe(is);
});

test('an object with a number of 20 digits where its step would be is no checkpoint of own code', async () => {
  const s3 = fakeS3(() => 1000);
  for (const name of ['out-99999999999999999999/done', 'out-5/done', 'final/done']) s3.put(`b/run/${name}`, 'x');
  expect(await listCheckpoints({ s3: s3.client }, P, { marker: '*/done' })).toMatchObject({
    committed: [
      { uri: `${P}out-5/`, step: 5 },
      { uri: `${P}final/`, step: 0 },
    ],
  });
});

test('the marker of own code is looked for only in folders that it can match', async () => {
  let now = 1000;
  const s3 = fakeS3(() => now);
  for (const [name, at] of [
    ['out-5/rank-0/done', 3000],
    ['out-40/rank-0/done', 2000],
    ['other/rank-0/done', 9000],
    ['out-7/done', 9000],
  ] as const) {
    now = at;
    s3.put(`b/run/${name}`, 'x');
  }
  expect(await listCheckpoints({ s3: s3.client }, P, { marker: 'out-*/rank-*/done' })).toEqual({
    kind: 'listed',
    committed: [
      { uri: `${P}out-40/rank-0/`, step: 40, attempt: null, writtenAt: 2000 },
      { uri: `${P}out-5/rank-0/`, step: 5, attempt: null, writtenAt: 3000 },
    ],
    torn: [],
    newestWriteAt: 3000,
    committedAt: { [`${P}out-5/rank-0/`]: 3000, [`${P}out-40/rank-0/`]: 2000 },
  });
  s3.failList(new Error('503'));
  expect(await listCheckpoints({ s3: s3.client }, P)).toEqual({ kind: 'unreadable', error: 'Error: 503' });
});

describe('a file `latest`', () => {
  const search = async (files: Record<string, string>, marker = 'latest') => {
    const s3 = fakeS3(() => 1000);
    for (const [name, text] of Object.entries(files)) s3.put(`b/run/${name}`, text);
    return listCheckpoints({ s3: s3.client }, P, { marker });
  };

  test('names the checkpoint that DeepSpeed finished last', async () => {
    const files = { 'global_step20/mp_rank_00.pt': 'x', 'global_step30/mp_rank_00.pt': 'x', latest: 'global_step20\n' };
    expect(await search(files)).toMatchObject({
      committed: [{ uri: `${P}global_step20/`, step: 20 }],
      newestWriteAt: 1000,
    });
    const below = Object.fromEntries(Object.entries(files).map(([name, text]) => [`out/zero/${name}`, text]));
    const found = { committed: [{ uri: `${P}out/zero/global_step20/`, step: 20 }] };
    for (const marker of ['out/zero/latest', '*/*/latest']) expect(await search(below, marker)).toMatchObject(found);
  });

  test.each(['', '..', 'a/b', 'global_step40', 'x'.repeat(300)])('that says %j names none', async (text) => {
    expect(await search({ latest: text, 'global_step20/a.pt': 'x', 'a/b/c': 'x' })).toMatchObject({ committed: [] });
  });
});

test('a marker whose path has no number is that of step 0', async () => {
  const s3 = fakeS3(() => 1000);
  s3.put('b/run/done', 'x');
  expect(await listCheckpoints({ s3: s3.client }, P, { marker: 'done' })).toMatchObject({
    committed: [{ uri: P, step: 0 }],
  });
});

describe('many folders', () => {
  const lists = (s3: ReturnType<typeof fakeS3>) => s3.mock.commandCalls(ListObjectsV2Command).length;

  test.each([
    ['*/DONE', 1],
    ['out/*/DONE', 2],
  ])('are listed from the highest step on until enough match the marker %s', async (marker, depth) => {
    const s3 = fakeS3(() => 1000);
    const folder = (step: number) => marker.replace('*/DONE', `s${step}/`);
    for (let step = 1; step <= 300; step++) s3.put(`b/run/${folder(step)}DONE`, 'x');
    const found = await listCheckpoints({ s3: s3.client }, P, { marker });
    expect(found).toMatchObject({ committed: [300, 299, 298].map((step) => ({ uri: P + folder(step), step })) });
    expect(lists(s3)).toBe(depth + 3);
  });

  test('without a marker are not listed one after another', async () => {
    const s3 = fakeS3(() => 1000);
    for (let step = 2; step <= 300; step++) s3.put(`b/run/step-${step}/a`, 'data');
    s3.put('b/run/step-1/a', 'data');
    s3.put(`b/run/step-1/${CHECKPOINT_MARKER}`, marker(1));
    const found = await listCheckpoints({ s3: s3.client }, P);
    expect(found).toMatchObject({ committed: [{ uri: `${P}step-1/`, step: 1 }], newestWriteAt: 1000 });
    const deep = s3.mock.commandCalls(ListObjectsV2Command).filter(({ args: [{ input }] }) => !input.Delimiter);
    expect(deep).toHaveLength(4);
  });

  test('have the same newest usable checkpoints, however many are listed', async () => {
    const names = fc.constantFrom('s1', 's2', 's10', 's33', 'best', 'x7-8', 'final');
    const paths = fc.uniqueArray(fc.tuple(names, fc.constantFrom('r0', 'r1', 'q')), { minLength: 1, selector: String });
    const markers = fc.constantFrom('*/DONE', '*/r*/DONE', 's*/*/DONE', '*/*/D*');
    const law = fc.asyncProperty(paths, markers, fc.nat({ max: 3 }), async (folders, glob, bad) => {
      const s3 = fakeS3(() => 1000);
      const isDeep = glob.split('/').length > 2;
      for (const [name, rank] of folders) s3.put(`b/run/${name}/${isDeep ? `${rank}/` : ''}DONE`, 'x');
      const all = await listCheckpoints({ s3: s3.client }, P, { marker: glob, enough: 1000 });
      if (all.kind !== 'listed') throw new Error(all.kind);
      const skipped = all.committed.slice(0, bad).map(checkpointKey);
      const usable = (listed: typeof all) => listed.committed.filter((c) => !skipped.includes(checkpointKey(c)));
      const few = await listCheckpoints({ s3: s3.client }, P, { marker: glob, enough: 1, bad: skipped });
      if (few.kind !== 'listed') throw new Error(few.kind);
      expect(usable(few)[0]?.step).toBe(usable(all)[0]?.step);
      const expected = folders.filter(([name, rank]) =>
        matchesMarker(glob, isDeep ? `${name}/${rank}/DONE` : `${name}/DONE`),
      );
      expect(new Set(all.committed.map((c) => c.uri)).size).toBe(
        new Set(expected.map(([n, r]) => (isDeep ? n + r : n))).size,
      );
    });
    await fc.assert(law, { numRuns: draws(30) });
  });
});
