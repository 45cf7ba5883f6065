import { expect, test } from 'vitest';
import {
  belowBase,
  consumers,
  parseManifest,
  processingInput,
  relativeTo,
} from '../../../lib/sandbox/jobs/files/inputs';
import { parseS3Uri } from '../../../lib/sandbox/jobs/files/s3-transfer';

test.each([
  ['train/', 'train/a/b', 'a/b'],
  ['train', 'train/a', 'a'],
  ['', 'a/b', 'a/b'],
  ['data/one.bin', 'data/one.bin', 'one.bin'],
  ['corpus/train', 'corpus/train/a.bin', 'a.bin'],
  ['corpus/train', 'corpus/train.csv', 'train.csv'],
  ['corpus/train', 'corpus/train-old/c.bin', 'train-old/c.bin'],
  ['corpus/train', 'corpus/trainer/x y.bin', 'trainer/x y.bin'],
  ['corpus//', 'corpus//a', 'a'],
])('below the prefix %j the key %j is the file %j', (prefix, key, file) => {
  expect(relativeTo(prefix, key)).toBe(file);
});

test('objects of a sharded input go to the hosts in turn', () => {
  expect([0, 1, 2].map((index) => consumers(index, ['a', 'b'], 'ShardedByS3Key'))).toEqual([['a'], ['b'], ['a']]);
  expect(consumers(5, ['a', 'b'], undefined)).toEqual(['a', 'b']);
});

test('fails: text that is no manifest', () => {
  expect(parseManifest('[{"prefix":"s3://b/x/"},"1"]', 'u')).toEqual([
    { from: { bucket: 'b', key: 'x/1' }, relativePath: '1' },
  ]);
  for (const text of ['{', '{}', '["a"]', '[{"prefix":"s3://b/"},1]']) {
    expect(() => parseManifest(text, 's3://b/m')).toThrow('Manifest file s3://b/m is not in valid format');
  }
});

test('paths of the container lie below the base folder of an instance', () => {
  expect(belowBase('/opt/ml/processing/input/raw')).toBe('processing/input/raw');
  expect(parseS3Uri('s3://bucket')).toEqual({ bucket: 'bucket', key: '' });
  expect(processingInput({ InputName: 'own', AppManaged: true })).toBeUndefined();
});
