import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort, startMiniStack } from '../../lib/sandbox/ministack/ministack';
import { ensureVenv } from '../../lib/sandbox/ministack/venv';
import { temporaryFolder, VENV } from './support';

let folder: string;
let other: Server;
let taken: number;

beforeEach(async () => {
  folder = temporaryFolder();
  other = createServer((socket) => socket.destroy());
  taken = await new Promise<number>((resolve) => {
    other.listen(0, '127.0.0.1', () => resolve((other.address() as { port: number }).port));
  });
});

afterEach(() => {
  other.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts MiniStack on the ports one after the other; the last one is found again and again. */
async function start(ports: number[]) {
  const venv = await ensureVenv(VENV, 'python3', () => undefined);
  const findPort = async () => (ports.length > 1 ? ports.shift() : ports[0]) ?? 0;
  const options = { venv, folder, findPort, accountId: '000000000000', jobMarker: 'slipway-test', lambdaEnv: {} };
  return startMiniStack(options);
}

test('a port that another process has taken meanwhile is not tried again', async () => {
  const free = await freePort();
  const ministack = await start([taken, free]);
  expect(ministack.endpoint).toBe(`http://127.0.0.1:${free}`);
  await ministack.stop();
});

test('when every start ends early, the error says so and names the log', async () => {
  await expect(start([taken])).rejects.toThrow(
    /^sandbox: MiniStack must answer, but it ended \(\S+\) before its first answer; see .*ministack\.log$/,
  );
});
