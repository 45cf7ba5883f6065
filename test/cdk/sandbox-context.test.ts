import { App } from 'aws-cdk-lib';
import { expect, test } from 'vitest';
import { embeddedEndpoint, isSandbox } from '../../lib/cdk/embedded-aws';

const EMBEDDED = { AWS_ENDPOINT_URL: 'https://127.0.0.1:4566' };
const app = (context: Record<string, unknown> = {}) => new App({ context });

test('the endpoints of the embedded AWS are noticed without context', () => {
  expect(isSandbox(app(), EMBEDDED)).toBe(true);
  expect(isSandbox(app(), {})).toBe(false);
});

test('context decides where it is given', () => {
  expect(isSandbox(app({ sandbox: '0' }), EMBEDDED)).toBe(false);
  expect(isSandbox(app({ sandbox: '1' }), {})).toBe(true);
});

test.each([
  'https://vpce-0f1e-abc.cloudformation.us-west-2.vpce.amazonaws.com',
  'https://cloudformation-fips.us-west-2.amazonaws.com',
  'not a url',
])('%s is no embedded AWS', (url) => {
  expect(embeddedEndpoint({ AWS_ENDPOINT_URL: url })).toBeUndefined();
});

test("CloudFormation's own endpoint goes before that of all services", () => {
  const AWS_ENDPOINT_URL_CLOUDFORMATION = 'https://cloudformation.us-west-2.amazonaws.com';
  expect(embeddedEndpoint({ ...EMBEDDED, AWS_ENDPOINT_URL_CLOUDFORMATION })).toBeUndefined();
});

test('endpoints that the SDK is told to ignore count for nothing', () => {
  expect(embeddedEndpoint({ ...EMBEDDED, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' })).toBeUndefined();
});
