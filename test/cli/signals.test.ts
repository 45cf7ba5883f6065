// A verb that is interrupted before its document is printed ends with one all the same.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { PYTHON } from '../support/python';

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
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

/** Runs a command in a terminal, and closes the terminal once the command has written. */
const TERMINAL = `
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(terminal, 5)
os.close(terminal)
os.waitpid(child, 0)
`;

test('a verb cleans up after its terminal was closed', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-terminal-'));
  const left = path.join(folder, 'left');
  writeFileSync(left, '');
  const verb = path.join(__dirname, 'programs', 'cleaning-verb.ts');
  execFileSync(PYTHON, ['-c', TERMINAL, process.execPath, '--import', 'tsx', verb, left]);
  expect(existsSync(left)).toBe(false);
}, 60_000);
