import { expect, test } from 'vitest';
import { acknowledge } from '../../lib/cdk/acknowledged-checks';
import { testStack } from './support/app';

const FINDING = { id: 'AwsSolutions-IAM5[Resource::*]', reason: 'a test needs it' };

test('an acknowledgement is recorded without a call stack, and other errors keep theirs', () => {
  const { stackTraceLimit } = Error;
  const stack = testStack();
  acknowledge(stack, FINDING);
  expect(JSON.stringify(stack.node.metadata)).toContain(FINDING.reason);
  expect(JSON.stringify(stack.node.metadata)).not.toContain('acknowledge.test.ts');
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
});

test('fails: a scope that is no construct, after which errors have their stack again', () => {
  const { stackTraceLimit } = Error;
  expect(() => acknowledge({} as never, FINDING)).toThrow();
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
});
