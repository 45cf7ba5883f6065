import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  DescribeInstanceTypeOfferingsCommand,
  DescribeVpcEndpointServicesCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { GetServiceQuotaCommand, ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const ec2 = mockClient(EC2Client);
const quotas = mockClient(ServiceQuotasClient);
const s3 = mockClient(S3Client);
const ENVIRONMENT = `name: lab
regions: { us-west-2: {}, us-east-1: {}, eu-north-1: {} }
network: { endpoints: [sts] }
quotas: { require: [{ instanceType: ml.p5.48xlarge, count: 4 }] }
`;
const CONFIG = {
  model_type: 'llama',
  hidden_size: 512,
  intermediate_size: 1024,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 32000,
};
let folder: string;
const at = (name: string) => path.join(folder, name);
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-regions-'));
  writeFileSync(at('lab.yaml'), ENVIRONMENT);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** us-west-2 has all of it, us-east-1 too small a quota, eu-north-1 no zone with the type. */
beforeEach(() => {
  ec2.reset();
  quotas.reset();
  s3.reset();
  quotas.on(GetServiceQuotaCommand).callsFake(async (_, client) => {
    const region = await client().config.region();
    return { Quota: { Value: region === 'us-east-1' ? 2 : 64 } };
  });
  ec2.on(DescribeInstanceTypeOfferingsCommand).callsFake(async ({ Filters }, client) => {
    const region = await client().config.region();
    const zones = region === 'eu-north-1' ? [] : region === 'us-west-2' ? ['usw2-az2', 'usw2-az1'] : ['use1-az4'];
    return { InstanceTypeOfferings: zones.map((Location) => ({ InstanceType: Filters?.[0]?.Values?.[0], Location })) };
  });
  // Each client asks in its region.
  ec2.on(DescribeVpcEndpointServicesCommand).callsFake(async (_input, getClient) => {
    const region = await getClient().config.region();
    return { ServiceDetails: ['s3', 'sts'].map((name) => ({ ServiceName: `com.amazonaws.${region}.${name}` })) };
  });
});

const ranked = async (...args: string[]) => {
  const { code, stdout } = await runCli(
    'preflight',
    at('lab.yaml'),
    '--json',
    ...(args.length > 0 ? args : ['--regions']),
  );
  return { code, ...(JSON.parse(stdout) as { regions: Record<string, unknown>[] }) };
};

test('the region that has everything comes first, and what the others lack stands there', async () => {
  const { code, regions } = await ranked();
  expect(code).toBe(0);
  expect(regions.map(({ rank, region, usable }) => [rank, region, usable])).toEqual([
    [1, 'us-west-2', true],
    [2, 'us-east-1', false],
    [3, 'eu-north-1', false],
  ]);
  expect(regions[0]).toMatchObject({
    zones: { 'ml.p5.48xlarge': ['usw2-az1', 'usw2-az2'] },
    endpointServices: { s3: true, sts: true },
    images: { smpAccount: '658645717510' },
    missing: [],
    toRequest: [],
  });
  expect(regions[1]?.toRequest).toEqual(
    expect.arrayContaining([
      expect.stringMatching(
        /^aws service-quotas request-service-quota-increase .*--desired-value 4 --region us-east-1$/,
      ),
    ]),
  );
  expect(regions[2]?.missing).toContain('no zone offers ml.p5.48xlarge');
});

test('what may not be read is unknown, and neither there nor missing', async () => {
  ec2
    .on(DescribeInstanceTypeOfferingsCommand)
    .rejects(Object.assign(new Error('no'), { name: 'UnauthorizedOperation' }));
  const { regions } = await ranked('--regions', 'us-west-2');
  expect(regions).toMatchObject([{ usable: null, zones: null, unknown: ['zones: UnauthorizedOperation: no'] }]);
});

test('a missing endpoint service is named', async () => {
  ec2
    .on(DescribeVpcEndpointServicesCommand)
    .resolves({ ServiceDetails: [{ ServiceName: 'com.amazonaws.us-west-2.s3' }] });
  expect((await ranked('--regions', 'us-west-2')).regions).toMatchObject([
    { usable: false, missing: ['no endpoint service sts'] },
  ]);
});

test('the model.config of a run may lie in S3', async () => {
  s3.on(GetObjectCommand, { Bucket: DESCRIPTOR.dataBucket, Key: 'm/config.json' }).resolves({
    Body: { transformToString: async () => JSON.stringify(CONFIG) } as never,
  });
  writeFileSync(at('descriptor.json'), JSON.stringify(DESCRIPTOR));
  writeFileSync(
    at('run.yaml'),
    `name: a
model: { config: "s3://{dataBucket}/m/config.json" }
code: { source: builtin }
training: { sequenceLength: 512, microBatchSize: 1, globalBatchSize: 16, steps: 10 }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 2 }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`,
  );
  const args = ['--environment', at('descriptor.json'), '--regions', 'us-west-2', '--json'];
  const { code, stdout } = await runCli('preflight', at('run.yaml'), ...args);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    regions: [{ region: 'us-west-2', zones: { 'ml.p5.48xlarge': expect.anything() } }],
  });
});

describe('wrong usage is exit 2', () => {
  test.each([
    [['preflight', 'nowhere', '--regions'], /nowhere: must be a file, or the name of an environment/],
    [
      ['preflight', 'FILE', '--regions', 'us-west-9'],
      /--regions: must be regions with SageMaker, got us-west-9; use .*us-west-2/,
    ],
  ])('fails: %j', async (args, message) => {
    const { code, stderr } = await runCli(...args.map((word) => (word === 'FILE' ? at('lab.yaml') : word)));
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});
