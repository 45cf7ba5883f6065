import { once } from 'node:events';
import { type Readable, Writable } from 'node:stream';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { ownPackage } from '../../shared/local/own-package';
import { EXIT, UsageError } from '../exit';
import type { Terminal } from '../terminal';

/** Runs one verb like the command line, and returns its exit code. */
export type RunVerb = (args: readonly string[], terminal: Terminal) => Promise<number>;

export interface McpOptions {
  /** Additional tools besides those that read, plan and dry-run: `launch`, `stop`. */
  allow?: string;
}

/** Tools that must be allowed explicitly. */
const GUARDED = ['launch', 'stop'];

interface Tool {
  name: string;
  /** Name of the argument of the verb. @default - it has none */
  place?: 'file' | 'source' | 'run';
  description: string;
  /** Words of the command line. @default - the name */
  words?: readonly string[];
}

const TOOLS: readonly Tool[] = [
  { name: 'validate', place: 'file', description: 'Checks a run file or an environment file against every rule' },
  { name: 'plan', place: 'file', description: 'Memory fit, step time, duration and cost of a run file' },
  {
    name: 'dry_run',
    place: 'file',
    description: 'The exact CreateTrainingJob request that a run file would make; creates nothing',
    words: ['launch', '--dry-run'],
  },
  { name: 'import', place: 'source', description: 'Creates a run file from a training job or a captured request' },
  { name: 'status', place: 'run', description: 'State, attempts, step, progress, end and spend of a run' },
  { name: 'list', description: 'The runs of the team' },
  { name: 'logs', place: 'run', description: 'Log lines of all attempts and hosts of a run' },
  {
    name: 'events',
    place: 'run',
    description: 'Decisions, attempts, commits and notices of a run',
    words: ['status', '--events'],
  },
  {
    name: 'launch',
    place: 'file',
    description: 'Launches a run file: this starts training and costs money',
    words: ['launch', '--yes'],
  },
  { name: 'stop', place: 'run', description: 'Asks a run to save a checkpoint and stop' },
];

/** `slipway tools mcp`: offers the verbs as tools of an MCP server on stdio until the input ends. */
export async function mcp(
  options: McpOptions,
  runVerb: RunVerb,
  terminal: Terminal,
  input: Readable = process.stdin,
): Promise<number> {
  const allowed = options.allow?.split(',').map((name) => name.trim()) ?? [];
  const unknown = allowed.find((name) => !GUARDED.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`--allow: must be ${GUARDED.join(', ')} or both, got ${unknown}; write --allow launch,stop`);
  const server = new McpServer({ name: 'slipway', version: ownPackage().version }, { capabilities: { tools: {} } });
  const calls = new Set<Promise<CallToolResult>>();
  for (const tool of TOOLS) {
    if (GUARDED.includes(tool.name) && !allowed.includes(tool.name)) continue;
    server.registerTool(tool.name, { description: tool.description, inputSchema: argumentsOf(tool) }, (given) => {
      const call = callTool(tool, given, runVerb);
      calls.add(call);
      return call.finally(() => calls.delete(call));
    });
  }
  const ended = once(input, 'end');
  await server.connect(new StdioServerTransport(input, printing(terminal)));
  await ended;
  // The messages that came last are dispatched, and their calls answered, before the connection is closed.
  await new Promise(setImmediate);
  while (calls.size > 0) await Promise.allSettled(calls);
  await new Promise(setImmediate);
  await server.close();
  return EXIT.done;
}

/** Each message is written at once, as one line. */
const printing = (terminal: Terminal): Writable =>
  new Writable({
    decodeStrings: false,
    write(message, _encoding, done) {
      terminal.out(String(message).trimEnd());
      done();
    },
  });

/** A value that looks like an option is rejected, so that text from a model never becomes an option. */
const word = z.string().regex(/^[^-]/, 'must not start with a hyphen');

const argumentsOf = ({ place }: Tool) =>
  z.strictObject({
    ...(place && { [place]: word.describe(`argument ${place} of slipway`) }),
    environment: word.optional().describe('environment, environment/team, or a descriptor file (.json)'),
    region: word.optional(),
    set: z.array(word).optional().describe('path=value overrides of a run file'),
  });

async function callTool(
  { name, place, words = [name] }: Tool,
  given: Record<string, unknown>,
  runVerb: RunVerb,
): Promise<CallToolResult> {
  const { environment, region, set = [] } = given as { environment?: string; region?: string; set?: string[] };
  const args = [
    ...words,
    ...(place ? [String(given[place])] : []),
    ...(environment === undefined ? [] : ['--environment', environment]),
    ...(region === undefined ? [] : ['--region', region]),
    ...set.flatMap((override) => ['--set', override]),
    '--json',
  ];
  const out: string[] = [];
  const err: string[] = [];
  const code = await runVerb(args, { out: (text) => out.push(text), err: (text) => err.push(text) });
  const content = [...out, ...(out.length === 0 || code > 1 ? err : [])].map((text) => ({
    type: 'text' as const,
    text,
  }));
  return { content, isError: code !== EXIT.done };
}
