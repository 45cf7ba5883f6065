// Calls to AWS go through the proxy of the environment, end after a time, and never send calls to this machine there.
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { awsClient, putBytes } from '../../lib/cli/aws-client';

/** What the proxy was asked for, and what arrived at the host itself. */
let asked: string[];
let direct: number[];
let proxy: http.Server;
let host: net.Server;

const listening = async <T extends net.Server>(server: T): Promise<T> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
};
const portOf = (server: net.Server): number => (server.address() as AddressInfo).port;

beforeEach(async () => {
  [asked, direct] = [[], []];
  proxy = await listening(
    http.createServer().on('connect', (request, socket) => {
      asked.push(String(request.url));
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    }),
  );
  host = await listening(
    net.createServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', (bytes) => {
          direct.push(bytes[0] ?? 0);
          socket.destroy();
        });
    }),
  );
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${portOf(proxy)}`);
  vi.stubEnv('NO_PROXY', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  proxy.close();
  host.close();
});

const TLS_HANDSHAKE = 0x16;
const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const call = (more: object = {}) =>
  awsClient(SSMClient, { region: 'us-west-2', maxAttempts: 1, credentials, ...more })
    .send(new GetParameterCommand({ Name: 'x' }))
    .catch((error: Error) => error);
const put = (url: string) =>
  putBytes(url, {}, Buffer.from('x'), AbortSignal.timeout(5000)).catch((error: Error) => error);

test('calls and uploads use the proxy', async () => {
  expect(await call()).toBeInstanceOf(Error);
  expect(await put('https://bucket.s3.us-west-2.amazonaws.com/key')).toBeDefined();
  expect(asked).toEqual(['ssm.us-west-2.amazonaws.com:443', 'bucket.s3.us-west-2.amazonaws.com:443']);
});

test('hosts of NO_PROXY are called directly', async () => {
  vi.stubEnv('NO_PROXY', '127.0.0.1');
  const endpoint = `https://127.0.0.1:${portOf(host)}`;
  await Promise.all([call({ endpoint }), put(endpoint)]);
  expect([asked, direct]).toEqual([[], [TLS_HANDSHAKE, TLS_HANDSHAKE]]);
});

test('the embedded AWS, which has no TLS, is called directly', async () => {
  const endpoint = `http://127.0.0.1:${portOf(host)}`;
  await Promise.all([call({ endpoint }), put(endpoint)]);
  expect([asked, direct.length]).toEqual([[], 2]);
});

test('bytes arrive with their headers, and the status comes back', async () => {
  const seen: string[] = [];
  const server = await listening(
    http.createServer(async (request, response) => {
      for await (const chunk of request) seen.push(`${request.headers['x-checksum']} ${chunk}`);
      response.writeHead(503).end('busy');
    }),
  );
  const status = await putBytes(
    `http://127.0.0.1:${portOf(server)}/key`,
    { 'x-checksum': 'c' },
    Buffer.from('code'),
    AbortSignal.timeout(5000),
  );
  server.close();
  expect([status, seen]).toEqual([503, ['c code']]);
});

test('a call that nobody answers ends', async () => {
  const { requestHandler } = awsClient(SSMClient, { region: 'us-west-2' }).config;
  expect(await (requestHandler as unknown as { configProvider: Promise<object> }).configProvider).toMatchObject({
    ...{ connectionTimeout: 10_000, requestTimeout: 70_000, throwOnRequestTimeout: true },
  });
});

test('no verb makes a client of its own', () => {
  const files = readdirSync('lib/cli', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const found = files.filter((name) => /new [A-Z]\w*Client\(/.test(readFileSync(path.join('lib/cli', name), 'utf8')));
  expect(found).toEqual([]);
});
