import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { EXIT, UsageError } from '../exit';
import { jsonLine, type Terminal } from '../terminal';
import { VERSION } from '../version';

/** Runs one verb like the command line, and returns its exit code. */
export type RunVerb = (args: readonly string[], terminal: Terminal) => Promise<number>;

/** Options of `slipway mcp`. */
export interface McpOptions {
  /** Additional tools besides those that read, plan and dry-run: `launch`, `stop`. */
  allow?: string;
}

/**
 * https://modelcontextprotocol.io/specification/2025-06-18, read 2026-11-22; newest first. The first one is offered to clients that request
 * an unknown version.
 */
const PROTOCOLS = ['2025-06-18', '2025-03-26', '2024-11-05'];
/** https://www.jsonrpc.org/specification, 5.1. */
const ERROR = { parse: -32700, request: -32600, method: -32601, params: -32602 } as const;
/** Tools that must be allowed explicitly. */
const GUARDED = ['launch', 'stop'];

interface Tool {
  name: string;
  description: string;
  /** Positional arguments of the verb, in order. */
  places: readonly string[];
  /** Words of the command line that are always appended. */
  words: readonly string[];
}

const TOOLS: readonly Tool[] = [
  {
    name: 'validate',
    description: 'Checks a run file or an environment file against every rule',
    places: ['file'],
    words: ['validate'],
  },
  {
    name: 'plan',
    description: 'Memory fit, step time, duration and cost of a run file',
    places: ['file'],
    words: ['plan'],
  },
  {
    name: 'dry_run',
    description: 'The exact CreateTrainingJob request that a run file would make; creates nothing',
    places: ['file'],
    words: ['launch', '--dry-run'],
  },
  {
    name: 'import',
    description: 'Creates a run file from a training job, a captured request, a recipe or a command line',
    places: ['source'],
    words: ['import'],
  },
  {
    name: 'status',
    description: 'State, attempts, step, progress, end and spend of a run',
    places: ['run'],
    words: ['status'],
  },
  { name: 'list', description: 'The runs of the team', places: [], words: ['list'] },
  { name: 'logs', description: 'Log lines of all attempts and hosts of a run', places: ['run'], words: ['logs'] },
  {
    name: 'events',
    description: 'Decisions, attempts, commits and notices of a run',
    places: ['run'],
    words: ['events'],
  },
  {
    name: 'launch',
    description: 'Launches a run file: this starts training and costs money',
    places: ['file'],
    words: ['launch', '--yes'],
  },
  { name: 'stop', description: 'Asks a run to save a checkpoint and stop', places: ['run'], words: ['stop'] },
];

interface Request {
  jsonrpc?: unknown;
  id?: string | number | null;
  method?: unknown;
  params?: Record<string, unknown> | null;
}

/** `slipway mcp`: offers the verbs as tools of an MCP server on stdio, one JSON-RPC message per line, until the input ends. */
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
  const tools = TOOLS.filter(({ name }) => !GUARDED.includes(name) || allowed.includes(name));
  for await (const line of createInterface({ input })) {
    if (line.trim() === '') continue;
    const answer = await answerTo(line, tools, runVerb);
    if (answer) terminal.out(jsonLine({ jsonrpc: '2.0', ...answer }));
  }
  return EXIT.done;
}

/** The answer to one message; undefined for a notification. */
async function answerTo(line: string, tools: readonly Tool[], runVerb: RunVerb): Promise<object | undefined> {
  let request: Request;
  try {
    request = JSON.parse(line) as Request;
  } catch {
    return failure(null, ERROR.parse, 'must be one JSON message per line');
  }
  if (typeof request !== 'object' || request === null || typeof request.method !== 'string')
    return failure(null, ERROR.request, 'must be a JSON-RPC request');
  const { id, method } = request;
  const params = request.params ?? {};
  if (id === undefined) return undefined;
  switch (method) {
    case 'initialize': {
      const asked = String(params.protocolVersion);
      const protocolVersion = PROTOCOLS.includes(asked) ? asked : PROTOCOLS[0];
      return {
        id,
        result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'slipway', version: VERSION } },
      };
    }
    case 'ping':
      return { id, result: {} };
    case 'tools/list':
      return { id, result: { tools: tools.map(described) } };
    case 'tools/call':
      return callTool(id ?? null, params, tools, runVerb);
    default:
      return failure(id ?? null, ERROR.method, `no method ${method}`);
  }
}

const failure = (id: string | number | null, code: number, message: string) => ({ id, error: { code, message } });

const described = ({ name, description, places }: Tool) => ({
  name,
  description,
  inputSchema: {
    type: 'object',
    properties: {
      ...Object.fromEntries(
        places.map((place) => [place, { type: 'string', description: `argument ${place} of slipway` }]),
      ),
      environment: { type: 'string', description: 'environment, environment/team, or a descriptor file (.json)' },
      region: { type: 'string' },
      set: { type: 'array', items: { type: 'string' }, description: 'path=value overrides of a run file' },
    },
    required: [...places],
    additionalProperties: false,
  },
});

async function callTool(
  id: string | number | null,
  params: Record<string, unknown>,
  tools: readonly Tool[],
  runVerb: RunVerb,
): Promise<object> {
  const found = tools.find(({ name }) => name === params.name);
  if (!found)
    return failure(
      id,
      ERROR.params,
      `no tool ${String(params.name)}; allowed are ${tools.map((t) => t.name).join(', ')}`,
    );
  const given = (params.arguments ?? {}) as Record<string, unknown>;
  const words = wordsOf(found, given);
  if (typeof words === 'string') return failure(id, ERROR.params, words);
  const out: string[] = [];
  const err: string[] = [];
  const code = await runVerb(words, { out: (text) => out.push(text), err: (text) => err.push(text) });
  const content = [...out, ...(out.length === 0 || code > 1 ? err : [])].map((text) => ({ type: 'text', text }));
  return { id, result: { content, isError: code !== EXIT.done } };
}

/**
 * The arguments of the verb, or an error about the given ones. A value that looks like an option is rejected, so that text from a model
 * never becomes an option.
 */
function wordsOf({ places, words }: Tool, given: Record<string, unknown>): string[] | string {
  const strings = [...places, 'environment', 'region'].filter((name) => given[name] !== undefined);
  const missing = places.find((name) => given[name] === undefined);
  if (missing !== undefined) return `${missing}: must be given`;
  const other = Object.keys(given).find((name) => ![...places, 'environment', 'region', 'set'].includes(name));
  if (other !== undefined) return `${other}: must not be given`;
  const bad = strings.find((name) => typeof given[name] !== 'string' || String(given[name]).startsWith('-'));
  if (bad !== undefined) return `${bad}: must be text that does not start with a hyphen`;
  const sets = given.set ?? [];
  if (!Array.isArray(sets) || !sets.every((set) => typeof set === 'string' && !set.startsWith('-')))
    return 'set: must be a list of path=value';
  const option = (name: string) => (given[name] === undefined ? [] : [`--${name}`, String(given[name])]);
  const placed = places.map((name) => String(given[name]));
  return [
    ...words,
    ...placed,
    ...option('environment'),
    ...option('region'),
    ...sets.flatMap((set) => ['--set', set]),
    '--json',
  ];
}
