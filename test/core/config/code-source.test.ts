import { expect, test } from 'vitest';
import { isArchiveInS3, isPrefixInS3 } from '../../../lib/core/config/code-source';

test.each([
  ['s3://bucket/code.tar.gz', true, false],
  ['s3://bucket/code/', false, true],
  ['./src', false, false],
  ['./src/', false, false],
  ['image', false, false],
])('%s is an archive in S3: %s, a prefix in S3: %s', (source, archive, prefix) => {
  expect([isArchiveInS3(source), isPrefixInS3(source)]).toEqual([archive, prefix]);
});
