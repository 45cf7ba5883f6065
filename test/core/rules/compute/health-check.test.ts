import { expect, test } from 'vitest';
import { healthCheckOf } from '../../../../lib/core/config/resolve-run';
import { BASE, issuesOf, runOf } from '../../../support/runs';

const file = (compute: object, rest: object = {}) => ({ ...BASE, ...rest, compute });
const GPU = { instanceType: 'ml.p5.48xlarge', instanceCount: 2 };
const CPU = { instanceType: 'ml.m5.xlarge', instanceCount: 1 };
const TOOLKIT = { distribution: { contract: 'toolkit' } };
const said = (given: object) => issuesOf(given, 'compute/health-check').map(({ level, path }) => `${level} ${path}`);

test.each<[string, object, string]>([
  ['quick on GPUs', file(GPU), 'quick'],
  ['off on CPUs', file(CPU), 'off'],
  ['off on Trainium', file({ instanceType: 'ml.trn1.32xlarge', instanceCount: 1 }), 'off'],
  ['off under the toolkit contract', file(GPU, TOOLKIT), 'off'],
  ['what the file says', file({ ...GPU, healthCheck: 'full' }), 'full'],
  ['off where the file says so', file({ ...GPU, healthCheck: 'off' }), 'off'],
])('%s', (_what, given, mode) => expect(healthCheckOf(runOf(given))).toBe(mode));

test.each<[string, object, string[]]>([
  ['the default', file(GPU), []],
  ['off anywhere', file({ ...CPU, healthCheck: 'off' }, TOOLKIT), []],
  ['full on GPUs', file({ ...GPU, healthCheck: 'full' }), []],
  ['under the toolkit contract', file({ ...GPU, healthCheck: 'quick' }, TOOLKIT), ['error compute.healthCheck']],
  ['without GPUs', file({ ...CPU, healthCheck: 'quick' }), ['warning compute.healthCheck']],
])('%s', (_what, given, issues) => expect(said(given)).toEqual(issues));
