import { CloudWatchLogsClient, GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { BatchGetBuildsCommand, CodeBuildClient, StartBuildCommand } from '@aws-sdk/client-codebuild';
import { BatchGetImageCommand, ECRClient, UpdateImageStorageClassCommand } from '@aws-sdk/client-ecr';
import { beforeEach, describe, expect, test } from 'vitest';
import { type BuildInFlight, isComplete, onEvent } from '../../../lib/control/image-build/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const codebuild = mockClient(CodeBuildClient);
const ecr = mockClient(ECRClient);
const logs = mockClient(CloudWatchLogsClient);
const region = 'us-west-2';
const deps = {
  codebuild: new CodeBuildClient({ region }),
  ecr: new ECRClient({ region }),
  logs: new CloudWatchLogsClient({ region }),
};
const events = resourceEvents('Custom::SlipwayTrainingImage', {
  projectName: 'project',
  repositoryName: 'slipway-research',
  tag: 'abc123',
});
const waiting = (type: 'create' | 'update' | 'delete', more: BuildInFlight = {}) =>
  ({ ...events[type](), ...more }) as unknown as Parameters<typeof isComplete>[1];

beforeEach(() => {
  codebuild.reset();
  ecr.reset();
  logs.reset();
  ecr.on(BatchGetImageCommand).resolves({ images: [] });
  ecr
    .on(UpdateImageStorageClassCommand)
    .rejects(Object.assign(new Error('no such image'), { name: 'ImageNotFoundException' }));
  codebuild.on(StartBuildCommand).resolves({ build: { id: 'project:1' } });
});

const pushed = () =>
  ecr.on(BatchGetImageCommand).resolves({ images: [{ imageId: { imageTag: 'abc123', imageDigest: 'sha256:d' } }] });

describe('create and update', () => {
  test('a new content hash starts one build, the same one for a repeated event', async () => {
    expect(await onEvent(deps, events.create())).toEqual({
      PhysicalResourceId: 'image-slipway-research',
      BuildId: 'project:1',
    });
    expect(codebuild.commandCalls(StartBuildCommand)[0]?.args[0].input).toEqual({
      projectName: 'project',
      idempotencyToken: 'request-1',
      environmentVariablesOverride: [{ name: 'IMAGE_TAG', value: 'abc123', type: 'PLAINTEXT' }],
    });
  });

  test('a hash that is in the registry builds nothing', async () => {
    pushed();
    await onEvent(deps, events.update());
    expect(codebuild.calls()).toHaveLength(0);
    expect(ecr.commandCalls(BatchGetImageCommand)[0]?.args[0].input).toEqual({
      repositoryName: 'slipway-research',
      imageIds: [{ imageTag: 'abc123' }],
    });
  });

  test.each([{}, { images: [{}] }, { images: [{ imageId: { imageTag: 'abc123' } }] }])(
    'the answer %j of the registry holds no digest',
    async (answer) => {
      ecr.on(BatchGetImageCommand).resolves(answer);
      codebuild.on(StartBuildCommand).resolves({});
      expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'image-slipway-research' });
    },
  );

  test('the token of a build has 64 characters at most, as CodeBuild takes them', async () => {
    await onEvent(deps, { ...events.create(), RequestId: 'r'.repeat(70) });
    expect(codebuild.commandCalls(StartBuildCommand)[0]?.args[0].input.idempotencyToken).toBe('r'.repeat(64));
  });

  test('a hash whose image was archived is restored and not built: its tag could not be pushed again', async () => {
    ecr.on(UpdateImageStorageClassCommand).resolves({ imageStatus: 'ACTIVATING' });
    expect(await onEvent(deps, events.update())).toEqual({ PhysicalResourceId: 'image-slipway-research' });
    expect(ecr.commandCalls(UpdateImageStorageClassCommand)[0]?.args[0].input).toEqual({
      repositoryName: 'slipway-research',
      imageId: { imageTag: 'abc123' },
      targetStorageClass: 'STANDARD',
    });
    expect(codebuild.calls()).toHaveLength(0);
    expect(await isComplete(deps, waiting('update'))).toEqual({ IsComplete: false });
  });

  test('fails: an archived image that may not be restored', async () => {
    ecr
      .on(UpdateImageStorageClassCommand)
      .rejects(Object.assign(new Error('not allowed'), { name: 'AccessDeniedException' }));
    await expect(onEvent(deps, events.update())).rejects.toThrow('not allowed');
    expect(codebuild.calls()).toHaveLength(0);
  });

  test('fails: a build that cannot be started', async () => {
    codebuild.on(StartBuildCommand).rejects(new Error('limit of builds'));
    await expect(onEvent(deps, events.create())).rejects.toThrow('limit of builds');
  });

  test('fails: malformed properties', async () => {
    await expect(onEvent(deps, events.create({ tag: 'A B' }))).rejects.toThrow(/tag: /);
  });
});

describe('waiting', () => {
  test('goes on while the build runs', async () => {
    codebuild.on(BatchGetBuildsCommand, { ids: ['project:1'] }).resolves({ builds: [{ buildStatus: 'IN_PROGRESS' }] });
    expect(await isComplete(deps, waiting('create', { BuildId: 'project:1' }))).toEqual({ IsComplete: false });
  });

  test('ends with the digest when the tag is there', async () => {
    pushed();
    expect(await isComplete(deps, waiting('create'))).toEqual({ IsComplete: true, Data: { Digest: 'sha256:d' } });
  });

  test('fails: a failed build names its phase, its message and its log', async () => {
    codebuild.on(BatchGetBuildsCommand).resolves({
      builds: [
        {
          buildStatus: 'FAILED',
          phases: [
            { phaseType: 'INSTALL', phaseStatus: 'SUCCEEDED' },
            { phaseType: 'BUILD', phaseStatus: 'FAILED', contexts: [{ message: 'exit status 1' }] },
          ],
          logs: { deepLink: 'https://console.example/log' },
        },
      ],
    });
    await expect(isComplete(deps, waiting('create', { BuildId: 'project:1' }))).rejects.toThrow(
      'image: the build must succeed and push its tag, got FAILED in BUILD: exit status 1; read https://console.example/log',
    );
  });
});

test.each([
  [{}, 'got no build in an unknown phase: ; read build project:1'],
  [{ builds: [{ buildStatus: 'STOPPED' as const }] }, 'got STOPPED in an unknown phase: ; read build project:1'],
  [
    {
      builds: [
        { buildStatus: 'FAILED' as const, phases: [{ phaseType: 'BUILD' as const, phaseStatus: 'FAILED' as const }] },
      ],
    },
    'got FAILED in BUILD: ; read build project:1',
  ],
  [
    { builds: [{ buildStatus: 'FAILED' as const, logs: { groupName: 'builds', deepLink: 'https://log' } }] },
    'got FAILED in an unknown phase: ; read https://log',
  ],
])('fails: a build of which CodeBuild says no more than %j', async (answer, message) => {
  codebuild.on(BatchGetBuildsCommand).resolves(answer);
  const refused = isComplete(deps, waiting('create', { BuildId: 'project:1' }));
  expect(await refused.catch((error: Error) => error.message)).toBe(
    `image: the build must succeed and push its tag, ${message}`,
  );
  expect(logs.calls()).toHaveLength(0);
});

test('delete leaves the images: live runs hold their digests', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(await isComplete(deps, waiting('delete'))).toEqual({ IsComplete: true });
  expect([...codebuild.calls(), ...ecr.calls()]).toHaveLength(0);
});

describe('the end of the log of a failed build', () => {
  const failed = () =>
    codebuild.on(BatchGetBuildsCommand).resolves({
      builds: [
        {
          buildStatus: 'FAILED',
          logs: { groupName: 'builds', streamName: 'one', deepLink: 'https://console' },
          phases: [{ phaseType: 'BUILD', phaseStatus: 'FAILED', contexts: [{ message: 'exit status 1' }] }],
        },
      ],
    });

  test('is part of the reason, which stays below what CloudFormation takes', async () => {
    failed();
    logs.on(GetLogEventsCommand).resolves({
      events: [...Array(19).fill({ message: 'x'.repeat(400) }), { message: 'ImportError: no module named torch\n' }],
    });
    const refused = isComplete(deps, waiting('create', { BuildId: 'project:1' }));
    await expect(refused).rejects.toThrow(
      /got FAILED in BUILD: exit status 1; read https:\/\/console\n[\s\S]*no module named torch$/,
    );
    expect(await refused.catch((error: Error) => Buffer.byteLength(error.message))).toBeLessThan(2500);
    expect(logs.commandCalls(GetLogEventsCommand)[0]?.args[0].input).toMatchObject({
      logGroupName: 'builds',
      limit: 20,
    });
  });

  test('is left out where the log is empty, and its lines may have no text', async () => {
    failed();
    const reason = () => isComplete(deps, waiting('create', { BuildId: 'project:1' })).catch((e: Error) => e.message);
    logs.on(GetLogEventsCommand).resolves({});
    expect(await reason()).toMatch(/read https:\/\/console$/);
    logs.on(GetLogEventsCommand).resolves({ events: [{}, { message: 'the last line' }] });
    expect(await reason()).toMatch(/read https:\/\/console\n\nthe last line$/);
  });

  test('fails: a log that cannot be read hides nothing else', async () => {
    failed();
    logs.on(GetLogEventsCommand).rejects(Object.assign(new Error('no'), { name: 'ResourceNotFoundException' }));
    await expect(isComplete(deps, waiting('create', { BuildId: 'project:1' }))).rejects.toThrow(
      'exit status 1; read https://console (its log could not be read: ResourceNotFoundException)',
    );
  });
});
