import { describe, expect, test } from 'vitest';
import { trainingJobRequest } from '../../../lib/job/training-request';
import { issuesOf, planOf, runOf } from '../../support/runs';

const GB200 = { instanceType: 'ml.p6e-gb200.36xlarge', instanceCount: 18 };
const file = (compute: object, more: object = {}) => ({ name: 'a', code: { source: 'src' }, compute, ...more });
const said = (compute: object, more: object = {}) =>
  issuesOf(file(compute, more), 'compute/')
    .filter(({ rule }) => /infra-check|placement/.test(rule))
    .map(({ message }) => message);

describe('the request', () => {
  test('says what the file says of check and placement', () => {
    const placement = { multipleJobs: true, ultraServers: [{ id: 'us-1', instanceCount: 9 }, { instanceCount: 9 }] };
    const request = trainingJobRequest(planOf(runOf(file({ ...GB200, infraCheck: true, placement }))));
    expect(request.InfraCheckConfig).toEqual({ EnableInfraCheck: true });
    expect(request.ResourceConfig?.InstancePlacementConfig).toEqual({
      EnableMultipleJobs: true,
      PlacementSpecifications: [{ UltraServerId: 'us-1', InstanceCount: 9 }, { InstanceCount: 9 }],
    });
  });

  test('says nothing of them without', () => {
    const request = trainingJobRequest(planOf(runOf(file(GB200))));
    expect([request.InfraCheckConfig, request.ResourceConfig?.InstancePlacementConfig]).toEqual([undefined, undefined]);
  });
});

test('a whole UltraServer in two halves is accepted', () => {
  expect(said({ ...GB200, placement: { ultraServers: [{ instanceCount: 9 }, { instanceCount: 9 }] } })).toEqual([]);
});

test.each([
  [
    { ...GB200, instanceCount: 36, placement: { ultraServers: [{ instanceCount: 9 }, { instanceCount: 27 }] } },
    {},
    'compute.placement.ultraServers[1].instanceCount: must be at most the 18 instances of one UltraServer, got 27; divide them over several',
  ],
  [
    { ...GB200, placement: { ultraServers: [{ instanceCount: 19 }] } },
    {},
    'compute.placement.ultraServers: must place at most the 18 instances of the job, got 19; lower the counts',
  ],
  [
    { instanceType: 'ml.p5.48xlarge', instanceCount: 2, placement: { multipleJobs: true } },
    {},
    'compute.placement: must go with a type in UltraServers, got ml.p5.48xlarge',
  ],
  [
    { ...GB200, alternatives: [{ instanceType: 'ml.p5.48xlarge' }], placement: { multipleJobs: true } },
    {},
    'compute.placement: must go with one instance type',
  ],
  [
    { instanceType: 'ml.m5.xlarge', instanceCount: 1, infraCheck: true },
    { kind: 'processing', output: { s3: 's3://{dataBucket}/x/' } },
    'compute.infraCheck: must go with a training job',
  ],
])('fails: %j', (compute, more, message) => expect(said(compute, more).join('\n')).toContain(message));
