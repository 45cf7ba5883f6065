// A verb that is interrupted before its document is printed ends with one all the same.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends a verb with --json in one document, and exit code 130',
  async (signal) => {
    // Accepts calls and answers none.
    const server = net.createServer((socket) => socket.on('error', () => undefined));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const words = ['list', '--environment', 'research/nlp', '--region', 'us-west-2', '--json'];
    const child = spawn(process.execPath, ['--import', 'tsx', 'bin/slipway.ts', ...words], {
      env: {
        ...process.env,
        AWS_ENDPOINT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        AWS_ACCESS_KEY_ID: 'a',
        AWS_SECRET_ACCESS_KEY: 'b',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    child.stdout.on('data', (text) => {
      stdout += text;
    });
    const ended = once(child, 'exit');
    const [socket] = await once(server, 'connection');
    child.kill(signal);
    const [code] = await ended;
    socket.destroy();
    server.close();
    expect(code).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      issues: [{ rule: 'command/interrupted', message: `interrupted by ${signal}` }],
    });
  },
  60_000,
);
