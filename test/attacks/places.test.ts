// Places in S3: what a run file may name, and what the control plane writes with its own role.
import { describe, expect, test } from 'vitest';
import { RunStore } from '../../lib/control/shared/run-store';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';

const OTHERS = 's3://{checkpointBucket}/runs/speech/victim-1/';

async function startErrors(world: FakeWorld, runFile: string): Promise<string[]> {
  const answer = await world.ask({ action: 'start', runFile, clientRequestId: 'places' });
  return 'issues' in answer ? answer.issues.filter(({ level }) => level === 'error').map(({ message }) => message) : [];
}

/** A world whose descriptor names what a deployed one names. */
function deployed(extras: Record<string, unknown> = {}): FakeWorld {
  const world = fakeWorld();
  world.limits.set('ml.m5.xlarge for training job usage', { value: 40 });
  world.describe(extras);
  return world;
}

describe('a run file of team nlp', () => {
  const places: [name: string, line: string][] = [
    ['checkpoints of another team', `checkpoints: { s3: '${OTHERS}' }`],
    [
      'checkpoints of another team by the name of the bucket',
      "checkpoints: { s3: 's3://checkpoint-bucket/runs/speech/x/' }",
    ],
    ['checkpoints of all teams', "checkpoints: { s3: 's3://checkpoint-bucket/' }"],
    [
      'checkpoints beside the team, whose name begins alike',
      "checkpoints: { s3: 's3://{checkpointBucket}/runs/nlp-2/x/' }",
    ],
    ['checkpoints among job files', "checkpoints: { s3: 's3://artifact-bucket/runs/nlp/' }"],
    ['checkpoints above its folder', "checkpoints: { s3: 's3://{checkpointBucket}/runs/nlp/../speech/x/' }"],
    ['checkpoints in a bucket of someone else', "checkpoints: { s3: 's3://someone-else/x/' }"],
    ['a start from another team', `checkpoints: { startFrom: '${OTHERS}' }`],
    ['outputs among those of another team', `output: { s3: '${OTHERS}' }`],
    [
      'weights of another team',
      `model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 }, weights: '${OTHERS}' }`,
    ],
  ];
  for (const [what, extras] of [
    ['without storage.external', {}],
    ['with an empty storage.external', { external: [] }],
  ] as const)
    test.each(places)(`fails: %s, ${what}`, async (_, line) => {
      const base = line.startsWith('model:') ? RUN_FILE.replace(/^model:.*\n/m, '') : RUN_FILE;
      const errors = await startErrors(deployed(extras), `${base}${line}\n`);
      expect(errors).toEqual([expect.stringMatching(/^(checkpoints|output|model)\..*must be /)]);
    });

  test.each([
    's3://{checkpointBucket}/runs/speech/x/',
    's3://artifact-bucket/runs/speech/x/',
    's3://data-bucket/teams/speech/x/',
  ])('fails: data in %s', async (uri) => {
    const errors = await startErrors(deployed(), RUN_FILE.replace('s3://{dataBucket}/tokens/', uri));
    expect(errors).toEqual([expect.stringMatching(/^data\[0\]\.s3: must be /)]);
  });

  const LUSTRE = { fsxLustre: 'fs-0123456789abcdef0', directoryPath: '/abcdefgh' };
  const shared = {
    subnetIds: ['subnet-1'],
    securityGroupIds: ['sg-1'],
    network: { mode: 'vpc-locked', packages: 'none' },
    fileSystems: { fsx: { id: 'fs-0123456789abcdef0', ...LUSTRE, isShared: true } },
    writableData: ['teams/nlp/', 'c4-tokens/'],
  };
  const mounting = (folder: string, access: string) =>
    RUN_FILE.replace(
      /^data: .*$/m,
      `data: [{ channel: train, s3: 's3://{dataBucket}/tokens/' }, { channel: a, fsxLustre: { fileSystemId: "{fsx}", directoryPath: "{fsxPath}${folder}", access: ${access} } }]`,
    );

  test.each([
    ...['/data/teams/speech', '/data/teams/speech/a', '/data//teams/speech', '/data/teams', '/data/./teams/speech'],
    ...['/data/teams//speech', '/data', '/data/', '', '/teams', '/teams/speech', '/teams/nlp2', '/checkpoints'],
  ])('fails: the folder %s of a file system that several teams mount', async (folder) => {
    for (const access of ['ro', 'rw'])
      expect(await startErrors(deployed(shared), mounting(folder, access))).toEqual([
        expect.stringMatching(
          /^data\[1\]\.fsxLustre\.directoryPath: must be a folder of \{fsxPath\}\/data that team nlp may .*; use \{fsxPath\}\/data\/teams\/\{team\}, /,
        ),
      ]);
  });

  test('fails: a writable folder of data that only others may change', async () => {
    expect(await startErrors(deployed(shared), mounting('/data/tokens', 'rw'))).toEqual([
      expect.stringMatching(/^data\[1\]\.fsxLustre\.directoryPath: must be a folder of .* may write /),
    ]);
  });

  test.each([
    ['/data/tokens', 'ro'],
    ['/data/c4-tokens/v2', 'rw'],
    ['/data/teams/{team}/a/', 'rw'],
    ['/teams/{team}', 'rw'],
    ['/teams/nlp/checkpoints', 'rw'],
  ])('mounts %s of a file system that several teams mount (%s)', async (folder, access) => {
    expect(await startErrors(deployed(shared), mounting(folder, access))).toEqual([]);
  });

  test('fails: a neighbour of an external location', async () => {
    const file = RUN_FILE.replace('s3://{dataBucket}/tokens/', 's3://company-lake/tokens-private/');
    const world = deployed({ external: [{ s3: 's3://company-lake/tokens', access: 'read' }] });
    expect(await startErrors(world, file)).toEqual([expect.stringMatching(/^data\[0\]\.s3: must be /)]);
  });

  test.each(['s3://company-lake/tokens', 's3://company-lake/tokens/part/'])(
    'reads %s of an external location',
    async (uri) => {
      const world = deployed({ external: [{ s3: 's3://company-lake/tokens', access: 'read' }] });
      expect(await startErrors(world, RUN_FILE.replace('s3://{dataBucket}/tokens/', uri))).toEqual([]);
    },
  );

  test.each([
    's3://{checkpointBucket}/runs/{team}/llama/',
    's3://{checkpointBucket}/runs/{team}/{runId}/',
    's3://checkpoint-bucket/runs/nlp/x',
  ])('keeps checkpoints in %s', async (uri) =>
    expect(await startErrors(deployed(), `${RUN_FILE}checkpoints: { s3: '${uri}' }\n`)).toEqual([]),
  );
});

describe('at the end of a run', () => {
  const save = (world: FakeWorld, folder: string) => {
    world.s3.put(`checkpoint-bucket/${folder}shard-0`, 'data');
    return () => world.s3.objects.get(`checkpoint-bucket/${folder}shard-0`)?.tag;
  };
  /** Stops a run and lets its job end. */
  async function stop(world: FakeWorld, runId: string): Promise<void> {
    await world.ask({ action: 'stop', runId });
    await world.tick(5);
    world.end(`research-${runId}-a001`, 'Stopped');
    await world.tick(5);
  }
  async function running(world: FakeWorld, file: string): Promise<string> {
    const runId = await world.launch(file);
    world.train(`research-${runId}-a001`);
    await world.tick(5);
    return runId;
  }

  test('tags what it left uncommitted below its own prefix', async () => {
    const world = deployed();
    const runId = await running(world, RUN_FILE);
    const tag = save(world, `runs/nlp/${runId}/step-100/`);
    await stop(world, runId);
    expect(tag()).toBe('slipway=leftover');
  });

  test('tags nothing in a prefix that it shares, while another run saves there', async () => {
    const world = deployed();
    const file = (name: string) =>
      `${RUN_FILE.replace('pretrain', name)}checkpoints: { s3: 's3://{checkpointBucket}/runs/{team}/llama/' }\n`;
    const first = await running(world, file('a'));
    world.pass(2000);
    await running(world, file('b'));
    const tag = save(world, 'runs/nlp/llama/step-200/');
    await stop(world, first);
    expect(tag()).toBeUndefined();
  });

  test('tags nothing of its own prefix, while another run of the team writes there', async () => {
    const world = deployed();
    const first = await running(world, RUN_FILE);
    world.pass(2000);
    await running(
      world,
      `${RUN_FILE.replace('pretrain', 'b')}checkpoints: { s3: 's3://{checkpointBucket}/runs/{team}/${first}/' }\n`,
    );
    const tag = save(world, `runs/nlp/${first}/step-200/`);
    await stop(world, first);
    expect(tag()).toBeUndefined();
  });

  test('fails: tags nothing of another team, although the intent of the run names its prefix', async () => {
    const world = deployed();
    const runId = await world.launch();
    // An earlier version accepted such a file: its intent is still in the table.
    const intent = world.table.items.get(`${runId}|INTENT`);
    const document = intent?.document?.S?.replaceAll('/runs/{team}/{runId}/', '/runs/speech/victim-1/') ?? '';
    world.table.items.set(`${runId}|INTENT`, { ...intent, document: { S: document } });
    world.reconcile.store = new RunStore(world.table.client, 'runs');
    world.train(`research-${runId}-a001`);
    await world.tick(5);
    const tag = save(world, 'runs/speech/victim-1/step-100/');
    await stop(world, runId);
    expect(tag()).toBeUndefined();
  });
});
