import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { smokeOverrides } from '../../../lib/core/config/smoke';
import { DRIVER_OPTIONS, RUN_OPTIONS } from '../../../lib/core/distribution/ray';
import { jobFile } from '../../../lib/core/job/job-file';
import { BASE, issuesOf, planOf, runOf } from '../../support/runs';

const ray = (distribution: object = {}, rest: object = {}) => ({
  ...BASE,
  code: { source: './src', requirements: 'requirements.txt' },
  checkpoints: { mode: 'managed' },
  ...rest,
  distribution: { launcher: 'ray', ...distribution },
});
const said = (file: object, prefix = 'ray/') =>
  issuesOf(file, prefix).map(({ level, message }) => `${level} ${message}`);

test('own code under Ray says nothing, on GPUs and on CPUs', () => {
  expect(said(ray())).toEqual([]);
  expect(said(ray({}, { compute: { instanceType: 'ml.m5.xlarge', instanceCount: 2 } }))).toEqual([]);
  expect(said(ray({ parameters: { 'object-store-memory': 1e9, include_dashboard: true } }))).toEqual([]);
});

test.each<[string, object, string[]]>([
  [
    'another library',
    ray({ library: 'fsdp' }),
    [
      'error distribution.library: must be custom with launcher ray: the script starts its own workers, got fsdp; use custom, or launcher torchrun',
    ],
  ],
  [
    'SMDDP',
    ray({ collectives: 'smddp' }),
    [
      'error distribution.collectives: must not be smddp with launcher ray: its workers start under torchrun or mpirun only, got smddp; use auto',
    ],
  ],
  [
    'the toolkit',
    ray({ contract: 'toolkit' }),
    [
      'error distribution.contract: must be entrypoint with launcher ray: the driver starts Ray, got toolkit; use entrypoint',
    ],
  ],
  [
    'an option of the driver',
    ray({ parameters: { node_ip_address: '10.0.0.1' } }),
    [
      'error distribution.parameters.node_ip_address: must not be an option that the driver sets itself, got node_ip_address; remove it',
    ],
  ],
  [
    'an option that ray start does not have',
    ray({ parameters: { 'object-store-mem': 1 } }),
    [
      'warning distribution.parameters.object-store-mem: must be an option of ray start, got object-store-mem; use object-store-memory, or remove it',
    ],
  ],
  [
    'Trainium',
    ray({}, { compute: { instanceType: 'ml.trn1.32xlarge', instanceCount: 2 } }),
    ['error distribution.launcher: must be torchrun or script on ml.trn1.32xlarge, got ray; use torchrun'],
  ],
  [
    'an image without Ray',
    ray({}, { code: { source: './src' } }),
    [
      'warning code.requirements: must name a file with ray, or the image must have it, got nothing; add code.requirements, or image.uri of an image with Ray',
    ],
  ],
  [
    'no checkpoints on several hosts',
    ray({}, { checkpoints: undefined }),
    [
      'warning checkpoints.mode: must not be none on several hosts with launcher ray, got none; set checkpoints.mode: managed, and save below /opt/ml/checkpoints',
    ],
  ],
])('fails: %s', (_what, file, expected) => expect(said(file)).toEqual(expected));

test('fails: no checkpoints on hosts of several groups', () => {
  const instanceGroups = ['a', 'b'].map((name) => ({ name, instanceType: 'ml.g5.12xlarge', instanceCount: 1 }));
  const file = ray({}, { checkpoints: undefined, compute: { instanceGroups } });
  expect(said(file, 'ray/checkpoints')).toHaveLength(1);
});

test('fails: the built-in trainer, and spare hosts', () => {
  expect(said(ray({}, { code: { source: 'builtin' } }), 'launcher/library')).toEqual([
    'error distribution.launcher: must be torchrun for the built-in trainer, got ray; use torchrun',
  ]);
  const spare = { compute: { ...BASE.compute, spareInstances: 1 } };
  expect(said(ray({}, spare), 'compute/spare-launcher')).toEqual([
    'error distribution.launcher: must be torchrun with compute.spareInstances: ray fixes its hosts when it starts, got ray; use torchrun, or remove spareInstances',
  ]);
});

test('a run without the launcher is not asked for Ray', () => {
  expect(issuesOf(BASE, 'ray/')).toEqual([]);
});

test('the driver gets the launcher and its options, and the entry point none of them', () => {
  const job = jobFile(
    planOf(runOf(ray({ parameters: { 'num-cpus': 4 } }, { code: { source: './src', arguments: { a: 1 } } }))),
  );
  expect([job.launcher, job.processesPerHost, job.arguments]).toEqual(['ray', 8, ['--a', '1']]);
  expect(job.distribution.parameters).toEqual({ 'num-cpus': 4 });
});

test('a smoke run in the sandbox keeps the launcher', () => {
  expect(smokeOverrides(runOf(ray()), 'sandbox')).toContain('distribution.launcher=ray');
});

test('the driver refuses the same options', () => {
  const source = readFileSync(
    path.join(__dirname, '../../../containers/driver/slipway_driver/ray_cluster/launch.py'),
    'utf8',
  );
  const own = /^OWN_OPTIONS = \((.*)\)$/m.exec(source)?.[1]?.match(/[\w-]+/g);
  expect(own).toEqual([...DRIVER_OPTIONS]);
  expect(RUN_OPTIONS.filter((name) => DRIVER_OPTIONS.includes(name))).toEqual([]);
});
