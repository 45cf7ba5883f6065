import { App } from 'aws-cdk-lib';
import { expect, test } from 'vitest';
import { isSandbox } from '../../lib/cdk/embedded-aws';

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
