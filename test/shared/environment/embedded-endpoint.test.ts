import { expect, test } from 'vitest';
import { embeddedEndpoint, hasForeignEndpoint } from '../../../lib/shared/environment/embedded-endpoint';

const EMBEDDED = { AWS_ENDPOINT_URL: 'https://127.0.0.1:4566' };

test.each([
  'https://vpce-0f1e-abc.cloudformation.us-west-2.vpce.amazonaws.com',
  'https://cloudformation-fips.us-west-2.amazonaws.com',
  'not a url',
])('%s is no embedded AWS', (url) => {
  expect(embeddedEndpoint({ AWS_ENDPOINT_URL: url })).toBeUndefined();
});

test.each([
  ['http://127.0.0.1:4566', true],
  ['http://localstack:4566', true],
  ['https://amazonaws.com.evil.example', true],
  ['', false],
  ['https://vpce-0f1e-abc.s3.us-west-2.vpce.amazonaws.com', false],
  ['https://sagemaker-fips.us-west-2.amazonaws.com/', false],
  ['https://s3.cn-north-1.amazonaws.com.cn', false],
])('an endpoint %j is foreign: %s', (url, isForeign) => {
  expect(hasForeignEndpoint({ AWS_ENDPOINT_URL_S3: url })).toBe(isForeign);
});

test("CloudFormation's own endpoint goes before that of all services", () => {
  const AWS_ENDPOINT_URL_CLOUDFORMATION = 'https://cloudformation.us-west-2.amazonaws.com';
  expect(embeddedEndpoint({ ...EMBEDDED, AWS_ENDPOINT_URL_CLOUDFORMATION })).toBeUndefined();
});

test('endpoints that the SDK is told to ignore count for nothing', () => {
  expect(embeddedEndpoint({ ...EMBEDDED, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' })).toBeUndefined();
});
