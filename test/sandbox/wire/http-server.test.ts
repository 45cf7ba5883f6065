import type http from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requestText } from '../../../lib/sandbox/wire/http-request';
import { type HttpServer, listen } from '../../../lib/sandbox/wire/http-server';
import { FOREIGN, OWN, own } from '../browser-headers';

/** Whether something at the address takes a connection. */
const answers = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: 2000 });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket
      .once('connect', () => end(true))
      .once('error', () => end(false))
      .once('timeout', () => end(false));
  });

test('listens on 127.0.0.1 and on no other address', async () => {
  const server = await listen(async () => ({ status: 200, body: {} }));
  try {
    const own = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
    // Linux answers on the whole of 127.0.0.0/8 for a server that listens on all addresses.
    const others = [...own.filter((address) => address !== '127.0.0.1' && !address.startsWith('fe80')), '127.0.0.2'];
    expect(await answers('127.0.0.1', server.port)).toBe(true);
    expect(await Promise.all(others.map((host) => answers(host, server.port)))).toEqual(others.map(() => false));
  } finally {
    await server.close();
  }
});

describe('a web page that a browser shows', () => {
  let server: HttpServer;
  let calls = 0;
  beforeAll(async () => {
    server = await listen(async () => ({ status: 200, body: { calls: ++calls } }));
  });
  afterAll(() => server.close());
  const statusOf = async (headers: http.OutgoingHttpHeaders, method = 'POST') =>
    (await requestText(new URL(server.url), { method, headers }, '')).status;

  test.each(FOREIGN)('fails: reaches no service with %o', async (headers) => {
    const count = calls;
    for (const method of ['OPTIONS', 'GET', 'POST'])
      expect(await statusOf(own(headers, server.port), method)).toBe(403);
    expect(calls).toBe(count);
  });

  test.each(OWN)('is no such page, and a program with %o is answered', async (headers) => {
    expect(await statusOf(own(headers, server.port))).toBe(200);
  });

  test('fails: under any name of a host that is not the loopback interface', async () => {
    await fc.assert(
      fc.asyncProperty(fc.domain(), fc.boolean(), async (host, hasPort) => {
        expect(await statusOf({ host: hasPort ? `${host}:${server.port}` : host })).toBe(403);
        expect(await statusOf({ origin: `http://${host}` })).toBe(403);
      }),
      { numRuns: 50 },
    );
  });
});
