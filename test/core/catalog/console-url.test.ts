import { expect, test } from 'vitest';
import { jobConsoleUrl } from '../../../lib/core/catalog/regions';

test.each([
  ['us-west-2', 'https://us-west-2.console.aws.amazon.com/sagemaker/home?region=us-west-2#/jobs/a'],
  ['cn-north-1', 'https://cn-north-1.console.amazonaws.cn/sagemaker/home?region=cn-north-1#/jobs/a'],
  ['us-gov-west-1', 'https://us-gov-west-1.console.amazonaws-us-gov.com/sagemaker/home?region=us-gov-west-1#/jobs/a'],
])('links to the console of the partition of %s', (region, url) => {
  expect(jobConsoleUrl(region, 'training', 'a')).toBe(url);
});

test('a name that no job can have gives an address all the same', () => {
  expect(jobConsoleUrl('us-west-2', 'processing', 'a"\ud800/#')).toMatch(/#\/processing-jobs\/a%22%EF%BF%BD%2F%23$/);
});
