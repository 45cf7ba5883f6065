import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import * as kms from 'aws-cdk-lib/aws-kms';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { TrainingImage } from '../../../lib/cdk';
import { runBuildSpec } from '../../support/codebuild';
import { resourcesOf, SYNTH_MS, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const REPOSITORY = '111122223333.dkr.ecr.us-west-2.amazonaws.com/slipway-research';
const BASE = '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13';
const ENVIRONMENT = {
  REPOSITORY_URI: REPOSITORY,
  BASE_IMAGE: BASE,
  DOCKERFILE: 'Dockerfile',
  IMAGE_TAG: 'abc',
  BASE_TAG: 'base-123',
  AWS_REGION: 'us-west-2',
};

let buildSpec = '';
let folder = '';

beforeAll(() => {
  const stack = testStack();
  const key = new kms.Key(stack, 'Key');
  new TrainingImage(stack, 'Image', { repositoryName: 'slipway-research', baseImageUri: BASE, key });
  const project = Object.values(resourcesOf(Template.fromStack(stack))).find(
    (r) => r.Type === 'AWS::CodeBuild::Project',
  );
  if (!project) throw new Error('no build project');
  buildSpec = (project.Properties.Source as { BuildSpec: string }).BuildSpec;
}, SYNTH_MS);
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-build-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const login = (registry: string) => [
  'aws ecr get-login-password --region us-west-2',
  `docker login --username AWS --password-stdin ${registry}`,
];

const OWN = '111122223333.dkr.ecr.us-west-2.amazonaws.com';
const KEPT = `${REPOSITORY}:base-123`;
const built = (from: string, base = BASE) => [
  `docker image inspect --format built on {{index .RepoDigests 0}} ${from}`,
  `docker build --file Dockerfile --build-arg BASE_IMAGE=${from} --label org.opencontainers.image.base.name=${base} --tag ${REPOSITORY}:abc .`,
  `docker push --quiet ${REPOSITORY}:abc`,
];

test('the first build keeps a copy of the base that a tag names, and builds on the copy', () => {
  const { calls, failedPhase } = runBuildSpec(buildSpec, folder, ENVIRONMENT, `docker pull --quiet ${KEPT}`);
  expect(failedPhase).toBeUndefined();
  expect(calls).toEqual([
    ...login(OWN),
    `docker pull --quiet ${KEPT}`,
    ...login('763104351884.dkr.ecr.us-west-2.amazonaws.com'),
    `docker pull --quiet ${BASE}`,
    `docker tag ${BASE} ${KEPT}`,
    `docker push --quiet ${KEPT}`,
    ...built(KEPT),
  ]);
});

test('later builds start from that copy, whatever the tag names by then', () => {
  const { calls } = runBuildSpec(buildSpec, folder, ENVIRONMENT);
  expect(calls).toEqual([...login(OWN), `docker pull --quiet ${KEPT}`, ...built(KEPT)]);
});

test('a base that a lock names by its digest is built on as it is', () => {
  const locked = `${BASE.split(':')[0]}@sha256:${'0'.repeat(64)}`;
  const { calls } = runBuildSpec(buildSpec, folder, { ...ENVIRONMENT, BASE_IMAGE: locked });
  expect(calls).toEqual([
    ...login(OWN),
    ...login('763104351884.dkr.ecr.us-west-2.amazonaws.com'),
    `docker pull --quiet ${locked}`,
    ...built(locked, locked),
  ]);
});

test('a public base needs no login of its own', () => {
  const { calls } = runBuildSpec(buildSpec, folder, { ...ENVIRONMENT, BASE_IMAGE: 'nvcr.io/nvidia/pytorch:26.01' });
  expect(calls.filter((call) => call.startsWith('docker login'))).toHaveLength(1);
});

test.each([
  ['ecr get-login-password', 'pre_build'],
  ['docker login', 'pre_build'],
  ['docker pull', 'pre_build'],
  ['docker build', 'build'],
  ['docker push', 'post_build'],
])('fails: nothing is pushed after a failing %s', (call, phase) => {
  const locked = { ...ENVIRONMENT, BASE_IMAGE: `${BASE.split(':')[0]}@sha256:0` };
  const { failedPhase, calls } = runBuildSpec(buildSpec, folder, locked, call);
  expect(failedPhase).toBe(phase);
  expect(calls.filter((made) => made.startsWith('docker push')).length).toBe(phase === 'post_build' ? 1 : 0);
});

test('fails: a function of one command is unknown to the next, while variables and the folder carry over', () => {
  const outcome = runBuildSpec(
    'phases: { build: { commands: ["greet() { docker hello; }", "export WORD=there; cd bin", "docker $WORD $(basename $(pwd))", greet] } }',
    folder,
    {},
  );
  expect(outcome).toMatchObject({ calls: ['docker there bin'], failedPhase: 'build' });
  expect(outcome.stderr).toContain('greet');
});
