import { UpdateTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { StartSessionCommand } from '@aws-sdk/client-ssm';
import { beforeEach, describe, expect, test } from 'vitest';
import { serviceError } from '../support/fake-sagemaker';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

const SESSION = { SessionId: 'nlp-0a1b', StreamUrl: 'wss://ssmmessages/x', TokenValue: 'secret' };

let world: FakeWorld;
let runId: string;
let job: string;

async function begin(runFile = RUN_FILE, allowRemoteDebug = true): Promise<void> {
  world = fakeWorld();
  world.describe({ guardrails: { allowRemoteDebug } });
  world.ssm.on(StartSessionCommand).resolves(SESSION);
  runId = await world.launch(runFile);
  job = `research-${runId}-a001`;
  world.train(job);
  await world.tick();
}
beforeEach(() => begin());

const sessions = () => world.ssm.commandCalls(StartSessionCommand).map(({ args }) => args[0].input);
const whats = async () => (await world.store.timeline(runId)).map(({ what }) => what);

describe('a shell', () => {
  test('remote debugging is turned on once, and a session into the host that was named is answered', async () => {
    const answer = await world.ask({ action: 'shell', runId, host: 2 });
    const request = {
      Target: `sagemaker-training-job:${job}_algo-2`,
      Reason: `slipway shell: run ${runId}, team nlp`,
    };
    expect(answer).toEqual({ ok: true, runId, trainingJobName: job, request, session: SESSION });
    await world.ask({ action: 'shell', runId });
    expect(world.sagemaker.mock.commandCalls(UpdateTrainingJobCommand).map(({ args }) => args[0].input)).toEqual([
      { TrainingJobName: job, RemoteDebugConfig: { EnableRemoteDebug: true } },
    ]);
    expect(sessions().map(({ Target }) => Target)).toEqual([
      `sagemaker-training-job:${job}_algo-2`,
      `sagemaker-training-job:${job}_algo-1`,
    ]);
  });

  test('the timeline keeps who had one, and not its token', async () => {
    await world.ask({ action: 'shell', runId, host: 2 });
    const lines = await world.store.timeline(runId);
    expect(lines.map(({ what }) => what)).toEqual(expect.arrayContaining(['remote-debug-enabled', 'shell-opened']));
    expect(lines.find(({ what }) => what === 'shell-opened')?.text).toBe(
      `a shell was opened into algo-2 of ${job} for team nlp: session nlp-0a1b`,
    );
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  test('a command is run by the document of AWS for one command', async () => {
    await world.ask({ action: 'shell', runId, command: 'nvidia-smi -L' });
    expect(sessions()[0]).toMatchObject({
      DocumentName: 'AWS-StartInteractiveCommand',
      Parameters: { command: ['nvidia-smi -L'] },
    });
  });

  test('while the agent of the host is not connected the caller is told to ask again', async () => {
    world.ssm.on(StartSessionCommand).rejects(serviceError('TargetNotConnected', 'is not connected', 400));
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({ ok: true, session: null });
    expect(await whats()).not.toContain('shell-opened');
  });
});

describe('fails: refused', () => {
  test("another team's run does not exist for this one", async () => {
    const answer = await world.ask({ action: 'shell', runId }, ALIAS.replace(/team-.*/, 'team-speech'));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
    expect(sessions()).toEqual([]);
  });

  test('a host that the job does not have', async () => {
    expect(await world.ask({ action: 'shell', runId, host: 3 })).toMatchObject({
      issues: [{ message: '--node: must be 1 to 2, got 3; choose one of them' }],
    });
  });

  test.each([
    ['the alternative that was selected', { SelectedInstanceType: 'ml.m5.2xlarge', SelectedInstanceCount: 4 }, 4],
    ['all groups', { InstanceGroups: [1, 2].map((n) => ({ InstanceGroupName: `g${n}`, InstanceCount: n })) }, 3],
  ])('no host but one beyond those of %s', async (_, config, hosts) => {
    const shaped = world.sagemaker.job(job);
    const { InstanceCount: _count, ...others } = shaped.request.ResourceConfig ?? {};
    shaped.request = { ...shaped.request, ResourceConfig: { ...others, ...config } as never };
    expect(await world.ask({ action: 'shell', runId, host: hosts })).toMatchObject({ ok: true });
    expect(await world.ask({ action: 'shell', runId, host: hosts + 1 })).toMatchObject({
      issues: [{ message: `--node: must be 1 to ${hosts}, got ${hosts + 1}; choose one of them` }],
    });
  });

  test('an environment whose guardrail does not allow it', async () => {
    await begin(RUN_FILE, false);
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [
        {
          rule: 'shell/guardrail',
          message:
            "guardrails.allowRemoteDebug: must be true in environment research: a shell has the credentials of the team's role; ask the platform team to set it and deploy",
        },
      ],
    });
    expect(world.sagemaker.mock.commandCalls(UpdateTrainingJobCommand)).toEqual([]);
  });

  test('an isolated container', async () => {
    await begin(`${RUN_FILE}network: { isolation: true }\ncheckpoints: { mode: none }\n`);
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [
        {
          rule: 'shell/isolation',
          message: `network.isolation: must be false for a shell: an isolated container cannot reach Systems Manager, got true; read its log with slipway logs ${runId} --environment research/nlp --region us-west-2`,
        },
      ],
    });
  });

  test('a job that is not training yet', async () => {
    Object.assign(world.sagemaker.job(job), { secondaryStatus: 'Starting' });
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [{ rule: 'shell/not-running', message: expect.stringContaining(`${runId}, Starting`) }],
    });
  });

  test('a run that is over', async () => {
    await world.ask({ action: 'stop', runId });
    await world.tick();
    world.end(job, 'Stopped');
    await world.tick();
    await world.tick();
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [{ rule: 'shell/not-running', message: expect.stringContaining(`${runId}, stopped`) }],
    });
  });

  test('a permission that is missing is said with the page that names it', async () => {
    world.ssm.on(StartSessionCommand).rejects(serviceError('AccessDeniedException', 'is not authorized', 400));
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [{ rule: 'shell/session', message: expect.stringContaining('got is not authorized; compare with ') }],
    });
  });

  test('another error of the service is thrown', async () => {
    world.ssm.on(StartSessionCommand).rejects(serviceError('InternalServerError', 'try again', 500));
    await expect(world.ask({ action: 'shell', runId })).rejects.toThrow('try again');
  });

  test('a host beyond all groups of a job that has several', async () => {
    const InstanceGroups = [{ InstanceCount: 2 }, { InstanceCount: 3 }, {}];
    const { request } = world.sagemaker.job(job);
    world.sagemaker.job(job).request = { ...request, ResourceConfig: { InstanceGroups } as never };
    expect(await world.ask({ action: 'shell', runId, host: 5 })).toMatchObject({ ok: true });
    expect(await world.ask({ action: 'shell', runId, host: 6 })).toMatchObject({
      issues: [{ message: '--node: must be 1 to 5, got 6; choose one of them' }],
    });
    world.sagemaker.job(job).request = { ...request, ResourceConfig: undefined };
    expect(await world.ask({ action: 'shell', runId })).toMatchObject({
      issues: [{ message: '--node: must be 1 to 0, got 1; choose one of them' }],
    });
  });
});
