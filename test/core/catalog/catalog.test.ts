import { describe, expect, test } from 'vitest';
import { dlcImageUri, huggingFaceImageUri, neuronImageUri, smpImageUri } from '../../../lib/core/catalog/images/images';
import { SMP_REGIONS, SMP_RELEASES } from '../../../lib/core/catalog/images/smddp';
import {
  defaultProcessesPerHost,
  findInstanceType,
  INSTANCE_TYPES,
  nearestInstanceTypes,
} from '../../../lib/core/catalog/instances/instances';
import { findModel, MODEL_NAMES } from '../../../lib/core/catalog/models';
import { findPrice } from '../../../lib/core/catalog/prices/prices';
import { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES, instanceQuota, QUOTA } from '../../../lib/core/catalog/quotas';
import { REGIONS } from '../../../lib/core/catalog/regions';

describe('instances', () => {
  test.each(INSTANCE_TYPES.map((t) => [t.name, t] as const))('%s has plausible facts', (name, type) => {
    expect(name).toMatch(/^ml\.[a-z0-9-]+\.[a-z0-9]+$/);
    expect([0, 1, 2, 4, 8, 16]).toContain(type.accelerator?.count ?? 0);
    expect(type.vcpus).toBeGreaterThan(0);
    expect(type.memoryGiB).toBeGreaterThan(0);
    expect(type.efaInterfaces).toBeGreaterThanOrEqual(0);
    if (type.gpuDirectRdma) expect(type.efaInterfaces).toBeGreaterThan(0);
    if (type.trainingPlan) expect(type.accelerator).toBeDefined();
  });

  test('processes per host follow GPUs, Neuron cores, or one', () => {
    expect(defaultProcessesPerHost('ml.p5.48xlarge')).toBe(8);
    expect(defaultProcessesPerHost('ml.trn1.32xlarge')).toBe(32);
    expect(defaultProcessesPerHost('ml.m5.xlarge')).toBe(1);
  });

  test('a misspelled type has near ones', () => {
    expect(nearestInstanceTypes('ml.p4d.24xlarg')[0]).toBe('ml.p4d.24xlarge');
    expect(findInstanceType('ml.p4d.24xlarg')).toBeUndefined();
  });
});

describe('quotas', () => {
  test('every code has the form of Service Quotas and names one quota', () => {
    const codes = Object.values(INSTANCE_QUOTA_CODES).flatMap((row) => Object.values(row));
    for (const code of [...codes, ...Object.keys(GENERAL_QUOTAS)]) expect(code).toMatch(/^L-[0-9A-F]{8}$/);
    expect(new Set(codes).size).toBe(codes.length);
  });

  test('the codes of general quotas are in the table', () => {
    for (const code of Object.values(QUOTA)) expect(GENERAL_QUOTAS[code]?.name).toBeTruthy();
  });

  test('a type without a known code keeps the name it is found by', () => {
    expect(instanceQuota('ml.p6-b300.48xlarge', 'training')).toEqual({
      code: undefined,
      name: 'ml.p6-b300.48xlarge for training job usage',
    });
    expect(instanceQuota('ml.p4d.24xlarge', 'spot').code).toBe('L-09D56C4F');
  });
});

describe('prices', () => {
  test("the environment's own rate wins, an estimate says so, an unknown price is undefined", () => {
    expect(findPrice('ml.p5.48xlarge', 'us-west-2', { 'ml.p5.48xlarge': 31.5 })).toMatchObject({
      usdPerHour: 31.5,
      basis: 'own',
    });
    expect(findPrice('ml.p5.48xlarge', 'us-west-2')).toMatchObject({ usdPerHour: 63.296, basis: 'observed' });
    expect(findPrice('ml.p5en.48xlarge', 'us-west-2')?.basis).toBe('estimate');
    expect(findPrice('ml.p3dn.24xlarge', 'us-west-2')).toBeUndefined();
  });
});

describe('images', () => {
  test('SMP regions have an SMP account', () => {
    for (const region of SMP_REGIONS) expect(REGIONS[region]?.smpAccount).toBe('658645717510');
    expect(smpImageUri('2.5.1', 'cn-north-1', 'ml.p4d.24xlarge')).toBeUndefined();
  });

  test('SMP tags of the SDK equal the documented ones from PyTorch 2.1 on', () => {
    for (const { pytorch, python, cuda } of SMP_RELEASES.filter((r) => r.pytorch !== '2.0.1')) {
      const documented = `${pytorch}-gpu-${python}-cu${cuda.replace('.', '')}`;
      expect(smpImageUri(pytorch, 'us-west-2', 'ml.p4d.24xlarge')?.split(':')[1]).toBe(documented);
    }
  });

  test('dlc and Hugging Face tags', () => {
    expect(dlcImageUri('2.5', 'us-west-2', true)).toBe(
      '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.5-gpu-py311',
    );
    expect(dlcImageUri('2.13', 'cn-north-1', true)).toMatch(/amazonaws\.com\.cn\/pytorch:2\.13\.0-cu133/);
    expect(dlcImageUri('2.13', 'us-west-2', false)).toBeUndefined();
    expect(neuronImageUri('1.11.0', 'il-central-1')).toBe(
      '780543022126.dkr.ecr.il-central-1.amazonaws.com/pytorch-training-neuron:1.11.0-neuron-py38-sdk2.4.0-ubuntu20.04',
    );
    expect(neuronImageUri('1.11.0', 'eu-north-1')).toBeUndefined();
    expect(neuronImageUri('2.0.0', 'us-west-2')).toBeUndefined();
    expect(huggingFaceImageUri('5.3', 'us-west-2')).toMatch(
      /huggingface-pytorch-training:2\.9\.0-transformers5\.3\.0-gpu-py312-cu130-ubuntu22\.04$/,
    );
    expect(huggingFaceImageUri('4.28', 'us-west-2')).toMatch(/2\.0\.0-transformers4\.28\.1-gpu-py310-cu118/);
  });
});

test.each(MODEL_NAMES)('model %s has a shape that divides', (name) => {
  const shape = findModel(name);
  if (!shape) throw new Error('no shape');
  expect(shape.headSize ?? shape.hiddenSize / shape.attentionHeads).toSatisfy(Number.isInteger);
  expect(shape.attentionHeads % shape.kvHeads).toBe(0);
});

test('a name that is no preset has no shape, nor has one that every object knows', () => {
  expect(findModel('llama9-8b')).toBeUndefined();
  expect(findModel('constructor')).toBeUndefined();
});
