import { describe, expect, test } from 'vitest';
import { awsRepositories } from '../../../lib/core/catalog/images/images';
import { BASE, DESCRIPTOR, issuesOf } from '../../support/runs';

const on = (instanceType: string, image: object) => ({
  ...BASE,
  image,
  compute: { instanceType, instanceCount: 2 },
  distribution: { library: 'custom' },
});
const dlc = (version: string) => ({ kind: 'dlc', version });

test.each([
  ['ml.trn1.32xlarge', dlc('2.5.1'), 'image/processor', 'error'],
  ['ml.p6e-gb200.36xlarge', dlc('2.13'), 'image/processor', 'error'],
  ['ml.p3dn.24xlarge', dlc('2.13'), 'image/stack', 'warning'],
  ['ml.p5.48xlarge', dlc('1.13.1'), 'image/stack', 'warning'],
  ['ml.p5en.48xlarge', dlc('2.5.1'), 'image/stack', 'warning'],
  ['ml.p6-b200.48xlarge', { kind: 'huggingface', version: '4.49.0' }, 'image/stack', 'warning'],
])('fails: %s with %j', (type, image, rule, level) => {
  expect(issuesOf(on(type, image), rule)).toMatchObject([{ rule, level }]);
});

test.each([
  ['ml.trn1.32xlarge', { kind: 'environment' }],
  ['ml.trn1.32xlarge', dlc('1.11')],
  ['ml.p3dn.24xlarge', dlc('2.8.0')],
  ['ml.p5.48xlarge', dlc('2.1.0')],
  ['ml.p5en.48xlarge', dlc('2.6.0')],
  ['ml.p6-b200.48xlarge', dlc('2.7.1')],
  ['ml.p4d.24xlarge', dlc('1.13.1')],
])('%s with %j suits', (type, image) => {
  expect([...issuesOf(on(type, image), 'image/processor'), ...issuesOf(on(type, image), 'image/stack')]).toEqual([]);
});

test('fails: Trainium with a version or a kind without a Neuron build, with the repository to look into', () => {
  const said = (image: object) => issuesOf(on('ml.trn2.48xlarge', image), 'image/processor').map((i) => i.message);
  expect(said(dlc('2.0.0'))).toEqual([
    'image.version: must be 1.11.0 on ml.trn2.48xlarge: there are no other Neuron builds of kind dlc, got 2.0.0; use it, or set image.uri to an image of pytorch-training-neuronx',
  ]);
  expect(said({ kind: 'huggingface', version: '4.36.0' })).toEqual([
    expect.stringMatching(/; set image.uri to an image of huggingface-pytorch-training-neuronx$/),
  ]);
});

test('fails: Trainium hosts after CPU hosts, where the SDK takes the CPU build', () => {
  const group = (name: string, instanceType: string) => ({ name, instanceType, instanceCount: 1 });
  const [cpu, trn] = [group('cpu', 'ml.c5.18xlarge'), group('trn', 'ml.trn1.32xlarge')];
  const file = (instanceGroups: object[]) => ({ ...on('', dlc('1.11.0')), compute: { instanceGroups } });
  expect(issuesOf(file([cpu, trn]), 'image/processor')).toMatchObject([{ path: 'image.kind' }]);
  expect(issuesOf(file([trn, cpu]), 'image/processor')).toEqual([]);
});

test('the Neuron build has regions of its own, and no patches', () => {
  const file = on('ml.trn1.32xlarge', dlc('1.11.0'));
  expect(issuesOf(file, 'image/registry', { region: 'eu-north-1' })).toMatchObject([{ path: 'image.kind' }]);
  expect(issuesOf(file, 'image/registry', { region: 'us-west-2' })).toEqual([]);
  expect(issuesOf(file, 'image/end-of-patch')).toMatchObject([
    { level: 'warning', message: expect.stringMatching(/set image.uri to an image of pytorch-training-neuronx/) },
  ]);
});

test.each([
  ['2.5.1', /PyTorch 2.10 or newer \(2.5 got its last patch before 2026\)/],
  ['2.8.0', /PyTorch 2.10 or newer \(2.8 got its last patch on 2026-08-06\)/],
])('an image of PyTorch %s gets no patches', (version, message) => {
  expect(issuesOf(on('ml.p4d.24xlarge', dlc(version)), 'image/end-of-patch')).toMatchObject([
    { level: 'warning', message: expect.stringMatching(message) },
  ]);
});

test('nothing is said of the patches of a version that nobody knows', () => {
  const file = on('ml.p4d.24xlarge', dlc('9.9.9'));
  expect(issuesOf(file, 'image/').map(({ rule }) => rule)).not.toContain('image/end-of-patch');
  expect(issuesOf(file, 'image/version')).toHaveLength(1);
});

test('fails: an SMP image in a region without one, whatever the library', () => {
  const file = on('ml.p5.48xlarge', { kind: 'smp', version: '2.5.1' });
  expect(issuesOf(file, 'image/registry', { region: 'eu-south-1' })).toMatchObject([{ path: 'image.kind' }]);
  expect(issuesOf(file, 'image/registry', { region: 'eu-west-1' })).toEqual([]);
});

test('a tag that moves is warned of', () => {
  const image = (tag: string) => ({ kind: 'uri', uri: `111122223333.dkr.ecr.us-west-2.amazonaws.com/mine:${tag}` });
  expect(issuesOf(on('ml.p5.48xlarge', image('latest')), 'image/uri')).toMatchObject([{ level: 'warning' }]);
  expect(issuesOf(on('ml.p5.48xlarge', image('v1')), 'image/uri')).toEqual([]);
});

test.each([
  [{ kind: 'dlc' }, 'image.version: must be set with kind dlc; use for example "2.'],
  [{ kind: 'smp' }, 'image.version: must be set with kind smp; use for example "2.'],
  [{ kind: 'huggingface' }, 'image.version: must be set with kind huggingface; use for example "5.'],
  [{ kind: 'dlc', version: '9.9.9' }, 'image.version: must be a version with dlc images, got 9.9.9; use '],
  [
    { kind: 'environment', version: '2.5.1' },
    'image.version: must be omitted with kind environment, got 2.5.1; remove it',
  ],
])('the version of %j: %s', (image, said) => {
  const found = issuesOf(on('ml.p4d.24xlarge', image), 'image/version');
  expect(found.map((i) => i.message)).toEqual([expect.stringContaining(said)]);
});

describe('the repository of a custom image', () => {
  const image = (repository: string) => ({ kind: 'uri', uri: `${repository}@sha256:${'0'.repeat(64)}` });
  const judged = (repository: string, descriptor: object = {}) =>
    issuesOf(on('ml.p5.48xlarge', image(repository)), 'image/repository', {
      descriptor: { ...DESCRIPTOR, ...descriptor } as typeof DESCRIPTOR,
    });
  const AWS = awsRepositories('us-west-2').map(
    ({ account, repository }) => `${account}.dkr.ecr.us-west-2.amazonaws.com/${repository}`,
  );

  test.each([`${DESCRIPTOR.account}.dkr.ecr.us-west-2.amazonaws.com/team/own`, 'docker.io/library/python', ...AWS])(
    '%s is one from which the role may pull, or outside of ECR',
    (repository) => {
      expect(judged(repository)).toEqual([]);
    },
  );

  test("fails: AWS's other images, and those of other accounts, where the environment does not allow them by name", () => {
    const spark = '153931337802.dkr.ecr.us-west-2.amazonaws.com/sagemaker-spark-processing';
    expect(judged(spark)).toMatchObject([{ level: 'warning', path: 'image.uri' }]);
    expect(judged(spark, { guardrails: { allowedImages: [spark] } })).toEqual([]);
  });
});
