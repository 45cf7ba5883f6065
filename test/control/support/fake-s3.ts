import {
  DeleteObjectsCommand,
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
  const listFaults: Error[] = [];
  /** Called when the content of an object is read. */
  const hooks = { onBody: () => {} };
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
    const transformToString = async () => {
      hooks.onBody();
      return body;
    };
    return { Body: { transformToString }, ContentLength: Buffer.byteLength(body), LastModified: new Date(at) };
  });
  mock.on(PutObjectTaggingCommand).callsFake((input) => {
    find(input).tag = input.Tagging.TagSet.map((t: { Key: string; Value: string }) => `${t.Key}=${t.Value}`).join();
    return {};
  });
  mock.on(DeleteObjectsCommand).callsFake((input) => {
    for (const { Key } of input.Delete.Objects) objects.delete(`${input.Bucket}/${Key}`);
    return {};
  });
  mock.on(HeadObjectCommand).callsFake((input) => ({ ContentLength: find(input).body.length }));
  mock.on(ListObjectsV2Command).callsFake(({ Bucket, Prefix, Delimiter }) => {
    const fault = listFaults.shift();
    if (fault) throw fault;
    const found = [...objects].filter(([name]) => name.startsWith(`${Bucket}/${Prefix}`));
    const rest = (name: string) => name.slice(`${Bucket}/${Prefix}`.length);
    const isBelow = (name: string) => Delimiter !== undefined && rest(name).includes(Delimiter);
    const folders = new Set(
      found.filter(([n]) => isBelow(n)).map(([n]) => `${Prefix}${rest(n).split(Delimiter)[0]}${Delimiter}`),
    );
    return {
      Contents: found
        .filter(([name]) => !isBelow(name))
        .map(([name, { body, at }]) => ({
          Key: `${Prefix}${rest(name)}`,
          Size: body.length,
          LastModified: new Date(at),
        })),
      CommonPrefixes: [...folders].map((folder) => ({ Prefix: folder })),
    };
  });
  return {
    client: new S3Client({ region: 'us-west-2' }),
    mock,
    objects,
    hooks,
    failList: (...planned: Error[]) => listFaults.push(...planned),
    put: (name: string, body: string) => objects.set(name, { body, at: now() }),
  };
}
