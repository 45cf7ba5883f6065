// The server answers the client of the official SDK, over a pair of streams as over stdio.
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { type McpOptions, mcp } from '../../../lib/cli/assist/mcp';
import { main } from '../../../lib/cli/main';
import { ownPackage } from '../../../lib/shared/local/own-package';
import { runCli } from '../../support/run-cli';

const RUN = path.join(__dirname, '../../../runs/builtin/llama3-8b-fsdp.yaml');
const run = (args: readonly string[], into: Parameters<typeof main>[1]) => main(['node', 'slipway', ...args], into);

/** What `talk` finds with a client that is connected to the server. */
async function withClient<T>(options: McpOptions, talk: (client: Client) => Promise<T>): Promise<T> {
  const input = new PassThrough();
  const lines = new ReadBuffer();
  const transport: Transport = {
    start: async () => undefined,
    send: async (message) => void input.write(serializeMessage(message)),
    close: async () => void input.end(),
  };
  const out = (text: string) => {
    lines.append(Buffer.from(`${text}\n`));
    const message = lines.readMessage();
    if (message) transport.onmessage?.(message);
  };
  const served = mcp(options, run, { out, err: () => undefined }, input);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  const found = await talk(client);
  await client.close();
  expect(await served).toBe(0);
  return found;
}

const call = (name: string, args: Record<string, unknown>, options: McpOptions = {}) =>
  withClient(options, async (client) => (await client.callTool({ name, arguments: args })) as CallToolResult);
const namesOf = (options: McpOptions) =>
  withClient(options, async (client) => (await client.listTools()).tools.map(({ name }) => name));
const textOf = ({ content }: CallToolResult) => content.map((part) => ('text' in part ? part.text : '')).join('\n');

test('names itself, and answers a ping', async () => {
  const server = await withClient({}, async (client) => {
    await client.ping();
    return client.getServerVersion();
  });
  expect(server).toEqual({ name: 'slipway', version: ownPackage().version });
});

test('tools that start and stop runs are there only when they are allowed', async () => {
  const READS = ['validate', 'plan', 'dry_run', 'import', 'status', 'list', 'logs', 'events'];
  expect(await namesOf({})).toEqual(READS);
  expect(await namesOf({ allow: 'launch' })).toEqual([...READS, 'launch']);
  expect(await namesOf({ allow: 'launch,stop' })).toEqual([...READS, 'launch', 'stop']);
  for (const name of ['launch', 'stop']) {
    const refused = await call(name, name === 'stop' ? { run: 'a' } : { file: RUN });
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining(`Tool ${name} not found`)]);
  }
});

test('plan answers the document that the command line prints', async () => {
  const answer = await call('plan', { file: RUN });
  expect(answer.isError).toBe(false);
  expect(JSON.parse(textOf(answer))).toEqual(JSON.parse((await runCli('plan', RUN, '--json')).stdout));
});

test('events runs the verb that prints the events of a run', async () => {
  const answer = await call('events', { run: 'a', environment: '/no/such/descriptor.json' });
  expect([answer.isError, textOf(answer)]).toEqual([true, expect.stringContaining('must be a readable file')]);
});

test('a refusal is a result with isError and its findings', async () => {
  const answer = await call('validate', { file: RUN, set: ['compute.instanceType=ml.p9.48xlarge'] });
  expect([answer.isError, textOf(answer)]).toEqual([true, expect.stringContaining('compute/instance-type')]);
});

test.each([
  [{}, 'file'],
  [{ file: '--html=/tmp/x' }, 'must not start with a hyphen'],
  [{ file: RUN, html: '/tmp/x' }, 'html'],
  [{ file: RUN, set: ['--html'] }, 'must not start with a hyphen'],
  [{ file: RUN, environment: '-x' }, 'must not start with a hyphen'],
  [{ file: 1 }, 'expected string'],
])('fails: plan with %j says what is wrong, and runs nothing', async (args, message) => {
  const answer = await call('plan', args);
  expect([answer.isError, textOf(answer)]).toEqual([true, expect.stringContaining(message)]);
  expect(textOf(answer)).toContain('Input validation error');
});

test('fails: only launch and stop can be allowed', async () => {
  const { code, stderr } = await runCli('tools', 'mcp', '--allow', 'everything');
  expect(code).toBe(2);
  expect(stderr).toContain('--allow: must be launch, stop or both, got everything');
});

test('a call whose client closes the input at once is answered before the server ends', async () => {
  const lines: string[] = [];
  const message = (id: number, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  const plan = { name: 'plan', arguments: { file: RUN } };
  const input = Readable.from([Buffer.from(`not a message\n${message(1, plan)}\n${message(2, plan)}\n`)]);
  expect(await mcp({}, run, { out: (text) => lines.push(text), err: () => undefined }, input)).toBe(0);
  expect(lines.map((line) => JSON.parse(line).id).sort()).toEqual([1, 2]);
});
