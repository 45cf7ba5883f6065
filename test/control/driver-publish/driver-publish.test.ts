import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/driver-publish/index';
import { driverFiles } from '../../../lib/shared/local/own-package';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
const deps = { s3: new S3Client({ region: 'us-west-2' }) };
const archive = driverFiles();
const events = resourceEvents('Custom::SlipwayDriver', {
  sourceBucket: 'assets',
  sourceKey: 'archive.json',
  bucket: 'artifacts',
  hash: archive.hash,
});
const given = (text: string) =>
  s3.on(GetObjectCommand).resolves({ Body: { transformToString: async () => text } as never });

beforeEach(() => {
  s3.reset();
  s3.on(PutObjectCommand).resolves({});
  given(JSON.stringify(archive));
});

test('create publishes every file under the hash, byte for byte', async () => {
  const answer = await onEvent(deps, events.create());
  expect(answer).toEqual({
    PhysicalResourceId: 'driver-artifacts',
    Data: {
      Uri: `s3://artifacts/drivers/${archive.hash}/`,
      Hash: archive.hash,
      Files: archive.files.length,
    },
  });
  const put = s3.commandCalls(PutObjectCommand).map((c) => c.args[0].input);
  expect(put.map((p) => p.Key).sort()).toEqual(archive.files.map((f) => `drivers/${archive.hash}/${f.name}`).sort());
  const launch = put.find((p) => p.Key?.endsWith('/launch.sh'));
  expect(String(launch?.Body)).toBe(archive.files.find((f) => f.name === 'launch.sh')?.text);
});

test('the two projects share a folder of the channel: each file of both has a name of its own, and all are code', () => {
  const names = archive.files.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(100);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => !/\.(py|sh)$/.test(name))).toEqual([]);
});

test('update publishes again and keeps the physical id, so that nothing is deleted', async () => {
  expect((await onEvent(deps, events.update())).PhysicalResourceId).toBe('driver-artifacts');
  expect(s3.commandCalls(GetObjectCommand)).toHaveLength(1);
});

test('delete leaves the files: a run resumes with the driver that it began with', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(s3.calls()).toHaveLength(0);
});

test('fails: files that do not have the hash are not published', async () => {
  given(JSON.stringify({ ...archive, files: [{ name: 'launch.sh', text: 'exit 0' }] }));
  await expect(onEvent(deps, events.create())).rejects.toThrow(`driver: must have the hash ${archive.hash}, got `);
  expect(s3.commandCalls(PutObjectCommand)).toHaveLength(0);
});

test('reads the archive that the construct made, and its hash does not depend on the order of the files', async () => {
  given(JSON.stringify({ ...archive, files: archive.files.toReversed() }));
  await onEvent(deps, events.create());
  expect(s3.commandCalls(GetObjectCommand)[0]?.args[0].input).toEqual({ Bucket: 'assets', Key: 'archive.json' });
  expect(s3.commandCalls(PutObjectCommand)).toHaveLength(archive.files.length);
});

test('fails: an archive that gives itself another hash than its files have', async () => {
  given(JSON.stringify({ ...archive, hash: 'f'.repeat(12) }));
  await expect(onEvent(deps, events.create())).rejects.toThrow(`driver: must have the hash ${archive.hash}, got `);
});

test('fails: an empty answer is no archive', async () => {
  s3.on(GetObjectCommand).resolves({});
  await expect(onEvent(deps, events.create())).rejects.toThrow(SyntaxError);
});

test('fails: an archive that is none', async () => {
  given('{"files": []}');
  await expect(onEvent(deps, events.create())).rejects.toThrow(/hash/);
});

test('fails: malformed properties', async () => {
  await expect(onEvent(deps, events.create({ hash: 'x' }))).rejects.toThrow(/Custom::SlipwayDriver Resource: hash: /);
});

test('fails: a write that is refused fails the deploy', async () => {
  s3.on(PutObjectCommand).rejects(Object.assign(new Error('denied'), { name: 'AccessDenied' }));
  await expect(onEvent(deps, events.create())).rejects.toThrow('denied');
});
