import path from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { type McpOptions, mcp } from '../../../lib/cli/assist/mcp';
import { main } from '../../../lib/cli/main';
import { runCli } from '../../support/run-cli';

const RUN = path.join(__dirname, '../../../runs/llama3-8b-fsdp.yaml');

/** What the server answers to these messages, in order. */
async function talk(
  messages: readonly (object | string)[],
  options: McpOptions = {},
): Promise<Record<string, never>[]> {
  const lines: string[] = [];
  const input = Readable.from(
    messages.map((m) => `${typeof m === 'string' ? m : JSON.stringify({ jsonrpc: '2.0', ...m })}\n`),
  );
  const terminal = { out: (text: string) => lines.push(text), err: () => undefined };
  await mcp(options, (args, into) => main(['node', 'slipway', ...args], into), terminal, input);
  return lines.map((line) => JSON.parse(line));
}

const call = (id: number, name: string, args: object) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

test('a client that initializes is answered in its own version, and notifications are not', async () => {
  const answers = await talk([
    {
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    },
    { method: 'notifications/initialized' },
    { id: 2, method: 'ping' },
  ]);
  expect(answers).toEqual([
    {
      jsonrpc: '2.0',
      id: 1,
      result: {
        protocolVersion: '2025-03-26',
        capabilities: { tools: {} },
        serverInfo: { name: 'slipway', version: '0.1.0' },
      },
    },
    { jsonrpc: '2.0', id: 2, result: {} },
  ]);
});

test('tools that start and stop runs are there only when they are allowed', async () => {
  const names = async (options: McpOptions) => {
    const [answer] = (await talk([{ id: 1, method: 'tools/list' }], options)) as unknown as {
      result: { tools: { name: string }[] };
    }[];
    return answer?.result.tools.map(({ name }) => name) ?? [];
  };
  expect(await names({})).not.toEqual(expect.arrayContaining(['launch']));
  expect(await names({})).toContain('dry_run');
  expect(await names({ allow: 'launch,stop' })).toEqual(expect.arrayContaining(['launch', 'stop']));
  const [refused] = await talk([call(1, 'launch', { file: RUN })]);
  expect(refused).toMatchObject({ error: { code: -32602, message: expect.stringContaining('no tool launch') } });
});

test('plan answers the document that the command line prints', async () => {
  const [answer] = (await talk([call(7, 'plan', { file: RUN })])) as unknown as {
    result: { content: { text: string }[]; isError: boolean };
  }[];
  expect(answer?.result.isError).toBe(false);
  expect(JSON.parse(answer?.result.content[0]?.text ?? '')).toEqual(
    JSON.parse((await runCli('plan', RUN, '--json')).stdout),
  );
});

test('a refusal is a result with isError and its findings', async () => {
  const [answer] = await talk([call(1, 'validate', { file: RUN, set: ['compute.instanceType=ml.p9.48xlarge'] })]);
  expect(answer).toMatchObject({
    result: { isError: true, content: [{ text: expect.stringContaining('compute/instance-type') }] },
  });
});

test.each([
  ['{', -32700],
  [{ id: 1, method: 'resources/list' }, -32601],
  ['{"jsonrpc":"2.0","id":1}', -32600],
  [call(1, 'plan', {}), -32602],
  [call(1, 'plan', { file: '--html=/tmp/x' }), -32602],
  [call(1, 'plan', { file: RUN, html: '/tmp/x' }), -32602],
  [call(1, 'plan', { file: RUN, set: ['--html'] }), -32602],
])('fails: %j is error %i', async (message, code) => {
  expect(await talk([message])).toMatchObject([{ error: { code } }]);
});

test('fails: only launch and stop can be allowed', async () => {
  const { code, stderr } = await runCli('mcp', '--allow', 'everything');
  expect(code).toBe(2);
  expect(stderr).toContain('--allow: must be launch, stop or both, got everything');
});

test('parameters may be null', async () => {
  expect(
    await talk([
      { id: 1, method: 'initialize', params: null },
      { id: 2, method: 'tools/call', params: null },
    ]),
  ).toMatchObject([
    { id: 1, result: { serverInfo: { name: 'slipway' } } },
    { id: 2, error: { code: -32602 } },
  ]);
});
