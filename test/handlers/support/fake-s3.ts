import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  PutObjectTaggingCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { mockClient } from '../../support/mocked-clients';
import { serviceError } from './fake-sagemaker';

/** Objects by `bucket/key`. */
export function fakeS3(now: () => number) {
  const objects = new Map<string, { body: string; at: number; tag?: string }>();
  const mock = mockClient(S3Client);
  const find = ({ Bucket, Key }: { Bucket?: string; Key?: string }) => {
    const found = objects.get(`${Bucket}/${Key}`);
    if (!found) throw serviceError('NoSuchKey', 'The specified key does not exist.', 404);
    return found;
  };
  mock.on(PutObjectCommand).callsFake((input) => {
    objects.set(`${input.Bucket}/${input.Key}`, { body: String(input.Body), at: now() });
    return {};
  });
  mock.on(GetObjectCommand).callsFake((input) => {
    const { body, at } = find(input);
    return { Body: { transformToString: async () => body }, LastModified: new Date(at) };
  });
  mock.on(PutObjectTaggingCommand).callsFake((input) => {
    find(input).tag = input.Tagging.TagSet.map((t: { Key: string; Value: string }) => `${t.Key}=${t.Value}`).join();
    return {};
  });
  mock.on(HeadObjectCommand).callsFake((input) => ({ ContentLength: find(input).body.length }));
  mock.on(ListObjectsV2Command).callsFake(({ Bucket, Prefix }) => ({
    Contents: [...objects]
      .filter(([name]) => name.startsWith(`${Bucket}/${Prefix}`))
      .map(([name, { body }]) => ({ Key: name.slice(Bucket.length + 1), Size: body.length })),
  }));
  return {
    client: new S3Client({ region: 'us-west-2' }),
    mock,
    objects,
    put: (name: string, body: string) => objects.set(name, { body, at: now() }),
  };
}
