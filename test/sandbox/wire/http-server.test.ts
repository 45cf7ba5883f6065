import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { listen } from '../../../lib/sandbox/wire/http-server';

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
