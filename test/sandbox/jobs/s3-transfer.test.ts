import { getEventListeners } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { downloadObject } from '../../../lib/sandbox/jobs/files/s3-transfer';
import { RunControl } from '../../../lib/sandbox/jobs/run-control';
import { eachInTurn } from '../../../lib/shared/aws/pace';

const AT_ONCE = 8;
let server: Server;
let s3: S3Client;
let folder: string;
/** Lets the bodies of all answers end, those that are still to come too. */
let finish: () => void;

/** Begins every answer at once and ends none before `finish`. */
function heldServer(): Server {
  const held = new Promise<void>((release) => {
    finish = release;
  });
  return createServer((_request, response) => {
    response.write('begin');
    held.then(() => response.end('end'));
  });
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-transfer-'));
  server = heldServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  s3 = new S3Client({
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    forcePathStyle: true,
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
  });
});
afterAll(() => {
  s3.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

test('the downloads of a job listen for its end together without a warning, and none listens afterwards', async () => {
  const warnings: string[] = [];
  const onWarning = (warning: Error) => warnings.push(warning.name);
  process.on('warning', onWarning);
  const { signal } = new RunControl();
  const listeners = () => getEventListeners(signal, 'abort').length;
  const keys = Array.from({ length: AT_ONCE }, (_, i) => `${i}`);
  const downloads = eachInTurn(keys, AT_ONCE, (key) =>
    downloadObject(s3, { bucket: 'bucket', key }, path.join(folder, key), signal),
  );
  // Node warns when the 11th comes.
  await vi.waitUntil(() => listeners() > 10, { timeout: 20_000 });
  finish();
  await downloads;
  await vi.waitUntil(() => listeners() === 0, { timeout: 20_000 });
  process.off('warning', onWarning);
  expect(readdirSync(folder)).toHaveLength(keys.length);
  expect(warnings).not.toContain('MaxListenersExceededWarning');
});
