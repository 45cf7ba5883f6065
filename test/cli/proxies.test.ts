// Calls to AWS go through the proxy of the environment, end after a time, and never send calls to this machine there.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import dns from 'node:dns';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { awsClient, putBytes } from '../../lib/cli/aws-client';
import { serviceError } from '../../lib/cli/aws-errors';

/** What the proxy was asked for, and what arrived at the host itself. */
let asked: string[];
let direct: number[];
let proxy: http.Server;
let host: net.Server;
/** AWS behind the proxy: it presents a certificate of the company, and answers every call with the same document. */
let aws: https.Server;
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-proxies-'));
const [keyFile, certFile] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];

beforeAll(() => {
  const hosts = ['ssm', 'oidc', 'portal.sso'].map((name) => `DNS:${name}.us-west-2.amazonaws.com`);
  const subject = ['-subj', '/CN=company', '-addext', `subjectAltName=${hosts}`];
  const files = ['-keyout', keyFile, '-out', certFile];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], { stdio: 'ignore' });
});
afterAll(() => rmSync(folder, { recursive: true }));

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
  const options = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  aws = await listening(
    https.createServer(options, (request, response) => {
      request.resume();
      const tokens = { accessToken: 't', refreshToken: 'r', expiresIn: 3600, tokenType: 'Bearer' };
      const roleCredentials = {
        accessKeyId: 'a',
        secretAccessKey: 'b',
        sessionToken: 'c',
        expiration: Date.now() + 1e7,
      };
      response.end(JSON.stringify({ Parameter: { Value: 'value' }, roleCredentials, ...tokens }));
    }),
  );
  vi.stubEnv('HTTPS_PROXY', `http://user:s3cret@127.0.0.1:${portOf(proxy)}`);
  vi.stubEnv('NO_PROXY', '');
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  proxy.close();
  host.close();
  aws.close();
});

/** Lets the proxy connect all hosts with `aws`. */
function letThrough(): void {
  proxy.removeAllListeners('connect').on('connect', (request, socket) => {
    asked.push(String(request.url));
    const upstream = net.connect(portOf(aws), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket]) end.on('error', () => undefined);
  });
  vi.stubEnv('AWS_CA_BUNDLE', certFile);
}

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

test('a proxy that speaks HTTP and is named with https:// is shown', async () => {
  vi.stubEnv('HTTPS_PROXY', `https://127.0.0.1:${portOf(proxy)}`);
  const { message } = serviceError('environment', await call());
  expect(message).toMatch(
    /through 127\.0\.0\.1:\d+, the proxy of HTTPS_PROXY, got (EPROTO|ERR_SSL\w+|ECONNRESET); correct it/,
  );
});

test('a proxy is named without a scheme, as for the AWS CLI', async () => {
  vi.stubEnv('HTTPS_PROXY', `127.0.0.1:${portOf(proxy)}`);
  letThrough();
  expect(await call()).toMatchObject({ Parameter: { Value: 'value' } });
});

test('calls one after the other share a connection', async () => {
  letThrough();
  for (let calls = 0; calls < 3; calls++) expect(await call()).not.toBeInstanceOf(Error);
  expect(asked).toEqual(['ssm.us-west-2.amazonaws.com:443']);
});

test('direct calls one after the other share a connection', async () => {
  vi.stubEnv('HTTPS_PROXY', '');
  vi.stubEnv('AWS_CA_BUNDLE', certFile);
  let connections = 0;
  aws.on('secureConnection', () => connections++);
  const lookup = (_: string, options: { all?: boolean }, done: (...answer: unknown[]) => void) =>
    options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as unknown as typeof dns.lookup);
  const endpoint = `https://ssm.us-west-2.amazonaws.com:${portOf(aws)}`;
  for (let calls = 0; calls < 3; calls++) expect(await call({ endpoint })).not.toBeInstanceOf(Error);
  expect(connections).toBe(1);
});

test('the sign-in of IAM Identity Center uses the proxy, also to refresh its token', async () => {
  const session = 'sso_region = us-west-2\nsso_start_url = https://company.awsapps.com/start\n';
  const role = 'sso_session = office\nsso_account_id = 111111111111\nsso_role_name = role\n';
  writeFileSync(path.join(folder, 'config'), `[profile company]\n${role}[sso-session office]\n${session}`);
  const cache = path.join(folder, '.aws/sso/cache');
  mkdirSync(cache, { recursive: true });
  const [soon, later] = [1e5, 1e9].map((ms) => new Date(Date.now() + ms).toISOString());
  const client = { clientId: 'c', clientSecret: 's', registrationExpiresAt: later };
  const token = { accessToken: 't', refreshToken: 'r', expiresAt: soon, ...client };
  writeFileSync(path.join(cache, `${createHash('sha1').update('office').digest('hex')}.json`), JSON.stringify(token));
  for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) vi.stubEnv(name, undefined);
  vi.stubEnv('HOME', folder);
  vi.stubEnv('AWS_CONFIG_FILE', path.join(folder, 'config'));
  vi.stubEnv('AWS_PROFILE', 'company');
  letThrough();
  expect(await call({ credentials: undefined })).not.toBeInstanceOf(Error);
  const hosts = ['oidc', 'portal.sso', 'ssm'].map((name) => `${name}.us-west-2.amazonaws.com:443`);
  expect(asked).toEqual(hosts);
});

const PASSWORD = /s3cret/;
test.each([
  ['407 Proxy Authentication Required', 'got 407 Proxy Authentication Required; write its user and password'],
  ['403 Forbidden', 'got 403 Forbidden; ask who runs it'],
])('what a proxy answers is shown: %s', async (answer, said) => {
  proxy.removeAllListeners('connect').on('connect', (_, socket) => socket.end(`HTTP/1.1 ${answer}\r\n\r\nno`));
  const { message } = serviceError('environment', await call());
  expect(message).toContain(`environment: must reach AWS through 127.0.0.1:${portOf(proxy)}, the proxy of HTTPS_PROXY`);
  expect(message).toContain(said);
  expect(message).not.toMatch(PASSWORD);
});

test.each([
  [
    { HTTPS_PROXY: 'http://user:s3cret@127.0.0.1:9' },
    'through 127.0.0.1:9, the proxy of HTTPS_PROXY, got ECONNREFUSED',
  ],
  [{ HTTPS_PROXY: 'socks5://user:s3cret@127.0.0.1:9' }, 'HTTPS_PROXY must begin with http:// or https://, got socks5:'],
  [{ HTTPS_PROXY: 'http://user:s3cret@[' }, 'HTTPS_PROXY must begin with http:// or https://, got a text'],
  [{ AWS_CA_BUNDLE: 'missing.pem' }, 'AWS_CA_BUNDLE must be a file with certificates, got ENOENT'],
  [{ AWS_CA_BUNDLE: __filename }, 'AWS_CA_BUNDLE must be a file with certificates, got a file without'],
])('settings that cannot work are named: %o', async (settings, said) => {
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  const { message } = serviceError('environment', await call());
  expect(message).toContain(said);
  expect(message).not.toMatch(PASSWORD);
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
