// Builds run their buildspec: each case with the rule, and without it where every build succeeds at once.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CloudWatchLogsClient, GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import {
  BatchGetBuildsCommand,
  type Build,
  CodeBuildClient,
  StartBuildCommand,
  StopBuildCommand,
} from '@aws-sdk/client-codebuild';
import { BatchGetImageCommand, CreateRepositoryCommand, ECRClient } from '@aws-sdk/client-ecr';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IMAGE_BUILD_SPEC } from '../../lib/cdk/image/image-build-spec';
import { eventually } from '../../lib/sandbox/testing';
import { type RuleWorld, RuleWorlds, roleFor, stack } from './rule-worlds';
import { temporaryFolder } from './support';

const worlds = new RuleWorlds();
beforeAll(() => worlds.open(), 180_000);
afterAll(() => worlds.close());

interface Project {
  commands?: string[];
  spec?: object;
  privileged?: boolean;
  variables?: Record<string, string>;
  source?: string;
}

/** Makes a build project and starts a build; answers its id. */
async function started(world: RuleWorld, name: string, project: Project): Promise<string> {
  const { privileged: PrivilegedMode = true, commands = [], source, variables = {} } = project;
  const spec = project.spec ?? { version: '0.2', phases: { build: { commands } } };
  const BuildSpec = JSON.stringify(spec, undefined, 1);
  const { reasons } = await stack(world, name, {
    Role: roleFor('codebuild.amazonaws.com'),
    Project: {
      Type: 'AWS::CodeBuild::Project',
      Properties: {
        Name: name,
        ServiceRole: { 'Fn::GetAtt': ['Role', 'Arn'] },
        Artifacts: { Type: 'NO_ARTIFACTS' },
        Source: source ? { Type: 'S3', Location: source, BuildSpec } : { Type: 'NO_SOURCE', BuildSpec },
        Environment: {
          Type: 'LINUX_CONTAINER',
          ComputeType: 'BUILD_GENERAL1_SMALL',
          Image: 'aws/codebuild/standard:7.0',
          PrivilegedMode,
          EnvironmentVariables: Object.entries(variables).map(([Name, Value]) => ({ Name, Value })),
        },
        LogsConfig: { CloudWatchLogs: { Status: 'ENABLED', GroupName: `/builds/${name}` } },
      },
    },
  });
  expect(reasons).toEqual([]);
  const environmentVariablesOverride = [{ name: 'OVERRIDDEN', value: 'by the call' }];
  const { build } = await new CodeBuildClient(world.options).send(
    new StartBuildCommand({ projectName: name, environmentVariablesOverride }),
  );
  return build?.id ?? '';
}

function buildEnd(world: RuleWorld, id: string): Promise<Build> {
  const codebuild = new CodeBuildClient(world.options);
  return eventually(
    async () => {
      const { builds } = await codebuild.send(new BatchGetBuildsCommand({ ids: [id] }));
      return builds?.[0]?.buildStatus !== 'IN_PROGRESS' && builds?.[0];
    },
    { what: `end of build ${id}`, timeoutSeconds: 120 },
  );
}

async function run(world: RuleWorld, name: string, project: Project) {
  const build = await buildEnd(world, await started(world, name, project));
  const failed = build.phases?.find(({ phaseStatus }) => phaseStatus === 'FAILED');
  return {
    status: build.buildStatus,
    phase: failed?.phaseType,
    why: failed?.contexts?.[0]?.message ?? '',
    log: await logOf(world, name, build),
  };
}

async function logOf(world: RuleWorld, name: string, { logs }: Build): Promise<string> {
  const { events = [] } = await new CloudWatchLogsClient(world.options)
    .send(new GetLogEventsCommand({ logGroupName: `/builds/${name}`, logStreamName: logs?.streamName ?? '' }))
    .catch(() => ({ events: [] }));
  return events.map(({ message }) => message).join('\n');
}

test('builds: a function that one command defines is not there in the next one', async () => {
  const commands = ['greet() { echo hello; }', 'greet'];
  const { applied, off } = await worlds.both((world) => run(world, 'functions', { commands }));
  expect(applied).toMatchObject({ status: 'FAILED', phase: 'BUILD' });
  expect(applied.why).toContain('Error while executing command: greet. Reason: exit status 127');
  expect(off.status).toBe('SUCCEEDED');
});

test('variables, the working directory and the overrides of the call carry over; the log group is the one of the project', async () => {
  const commands = ['mkdir inner && cd inner', 'plain="two words"', 'echo "$plain in $(basename $PWD) $OVERRIDDEN"'];
  const { applied } = await worlds.both((world) => run(world, 'carried', { commands }));
  expect(applied.status).toBe('SUCCEEDED');
  expect(applied.log).toContain('two words in inner by the call');
});

test('a failed build phase is followed by post_build, a failed pre_build by nothing', async () => {
  const phases = (failing: string) => ({
    version: '0.2',
    phases: Object.fromEntries(
      ['pre_build', 'build', 'post_build'].map((name) => [
        name,
        { commands: [`echo in-${name}`, ...(name === failing ? ['exit 3'] : [])] },
      ]),
    ),
  });
  const { applied } = await worlds.both(async (world) => ({
    build: await run(world, 'build-fails', { spec: phases('build') }),
    before: await run(world, 'pre-build-fails', { spec: phases('pre_build') }),
  }));
  expect(applied.build).toMatchObject({ status: 'FAILED', phase: 'BUILD' });
  expect(applied.build.log).toContain('in-post_build\n');
  expect(applied.before.log).not.toContain('in-build\n');
});

test('docker needs privileged mode', async () => {
  const project = { commands: ['docker pull public.ecr.aws/any/image:1'], privileged: false };
  const { applied } = await worlds.both((world) => run(world, 'unprivileged', project));
  expect(applied.log).toContain('Cannot connect to the Docker daemon');
});

function zipOf(files: Record<string, string>): Buffer {
  const folder = temporaryFolder();
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
    execFileSync('python3', ['-m', 'zipfile', '-c', 'source.zip', ...Object.keys(files)], { cwd: folder });
    return readFileSync(path.join(folder, 'source.zip'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const BASE = '763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training';

/** The product's own image build, on a source that holds these files. A base that is named by its digest is not copied. */
async function imageBuild(world: RuleWorld, name: string, files: Record<string, string>, base = `${BASE}:2.7`) {
  const s3 = new S3Client(world.options);
  await s3.send(new CreateBucketCommand({ Bucket: name }));
  await s3.send(new PutObjectCommand({ Bucket: name, Key: 'source.zip', Body: zipOf(files) }));
  const ecr = new ECRClient(world.options);
  const { repository } = await ecr.send(new CreateRepositoryCommand({ repositoryName: name }));
  const variables = {
    REPOSITORY_URI: repository?.repositoryUri ?? '',
    BASE_IMAGE: base,
    BASE_TAG: 'base-0123',
    DOCKERFILE: 'Dockerfile',
    IMAGE_TAG: 'content-hash',
  };
  const project = { spec: IMAGE_BUILD_SPEC, source: `${name}/source.zip`, variables };
  const found = await run(world, name, project);
  const image = new BatchGetImageCommand({ repositoryName: name, imageIds: [{ imageTag: 'content-hash' }] });
  const copy = new BatchGetImageCommand({ repositoryName: name, imageIds: [{ imageTag: 'base-0123' }] });
  const [images, bases] = [await ecr.send(image), await ecr.send(copy)];
  return { ...found, images: images.images?.length, bases: bases.images?.length };
}

test("the product's image build keeps its base and pushes the tag", async () => {
  const files = { Dockerfile: 'ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY own.py /opt/\n', 'own.py': '' };
  const { applied, off } = await worlds.both((world) => imageBuild(world, 'image', files));
  expect(applied).toMatchObject({ status: 'SUCCEEDED', images: 1, bases: 1 });
  expect(off).toMatchObject({ status: 'SUCCEEDED', images: 0 });
});

test('a Dockerfile that copies what the source does not hold fails the build', async () => {
  const files = { Dockerfile: 'ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY missing.py /opt/\n' };
  const { applied } = await worlds.both((world) =>
    imageBuild(world, 'missing', files, `${BASE}@sha256:${'0'.repeat(64)}`),
  );
  expect(applied).toMatchObject({ status: 'FAILED', phase: 'BUILD', images: 0, bases: 0 });
  expect(applied.log).toContain('"/missing.py": not found');
});

test('a build can be stopped', async () => {
  const { applied } = await worlds.both(async (world) => {
    const id = await started(world, 'stopped', { commands: ['sleep 600'] });
    await new CodeBuildClient(world.options).send(new StopBuildCommand({ id }));
    return buildEnd(world, id);
  });
  expect(applied.buildStatus).toBe('STOPPED');
});
