// yaml-language-server as an editor runs it: a process that speaks the Language Server Protocol on its standard streams.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import path from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const SERVER = path.join(__dirname, '../../node_modules/yaml-language-server/bin/yaml-language-server');
const SETTINGS = { schemaStore: { enable: false }, validate: true, hover: true, completion: true };

interface Diagnostic {
  message: string;
  range: { start: { line: number } };
}

/** An open file, and a place in it: the first `|` of the text that was given. */
export interface Opened {
  uri: string;
  position: { line: number; character: number };
  diagnostics: Diagnostic[];
}

interface Message {
  id?: number;
  method?: string;
  params?: { uri: string; diagnostics: Diagnostic[]; items?: { section: string }[] };
  result?: unknown;
}

export class YamlLanguageServer {
  private readonly answers = new Map<number, (result: unknown) => void>();
  /** Who waits for the diagnostics of a file, by its URI. */
  private readonly waiting = new Map<string, (diagnostics: Diagnostic[]) => void>();
  private received = Buffer.alloc(0);
  private lastId = 0;

  private constructor(private readonly process: ChildProcessByStdio<Writable, Readable, null>) {
    process.stdout.on('data', (chunk: Buffer) => this.read(chunk));
  }

  /** Starts the server with `root` as its workspace. It fetches no schema store. */
  static async start(root: string): Promise<YamlLanguageServer> {
    const server = new YamlLanguageServer(
      spawn(process.execPath, [SERVER, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    const uri = pathToFileURL(root).href;
    const workspace = { configuration: true, workspaceFolders: true };
    await server.request('initialize', {
      processId: process.pid,
      rootUri: uri,
      workspaceFolders: [{ uri, name: 'workspace' }],
      capabilities: { workspace, textDocument: { publishDiagnostics: {}, completion: {}, hover: {} } },
    });
    server.send({ method: 'initialized', params: {} });
    server.send({ method: 'workspace/didChangeConfiguration', params: { settings: { yaml: SETTINGS } } });
    return server;
  }

  /** Opens `text` under the name `file`, which need not exist, and waits for its diagnostics. */
  async open(file: string, text: string): Promise<Opened> {
    const uri = pathToFileURL(file).href;
    const [before = '', after = ''] = text.split('|', 2);
    const lines = before.split('\n');
    const position = { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
    const published = new Promise<Diagnostic[]>((resolve) => {
      this.waiting.set(uri, resolve);
    });
    const textDocument = { uri, languageId: 'yaml', version: 1, text: before + after };
    this.send({ method: 'textDocument/didOpen', params: { textDocument } });
    return { uri, position, diagnostics: await published };
  }

  /** What the editor shows for the word at the place. */
  async hover({ uri, position }: Opened): Promise<string> {
    const found = await this.request('textDocument/hover', { textDocument: { uri }, position });
    return (found as { contents: { value: string } } | null)?.contents.value ?? '';
  }

  /** Labels that the editor offers at the place. */
  async complete({ uri, position }: Opened): Promise<string[]> {
    const found = await this.request('textDocument/completion', { textDocument: { uri }, position });
    return (found as { items: { label: string }[] }).items.map(({ label }) => label);
  }

  async stop(): Promise<void> {
    await this.request('shutdown', null);
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.send({ method: 'exit' });
    await ended;
  }

  private request(method: string, params: unknown): Promise<unknown> {
    const id = ++this.lastId;
    const answer = new Promise((resolve) => this.answers.set(id, resolve));
    this.send({ id, method, params });
    return answer;
  }

  private send(message: object): void {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.process.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  private read(chunk: Buffer): void {
    this.received = Buffer.concat([this.received, chunk]);
    for (;;) {
      const end = this.received.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/i.exec(this.received.subarray(0, end).toString())?.[1]);
      if (end < 0 || this.received.length < end + 4 + length) return;
      const body = this.received.subarray(end + 4, end + 4 + length).toString();
      this.received = this.received.subarray(end + 4 + length);
      this.handle(JSON.parse(body) as Message);
    }
  }

  private handle({ id, method, params, result }: Message): void {
    if (method === undefined && id !== undefined) this.answers.get(id)?.(result);
    else if (method === 'textDocument/publishDiagnostics' && params) this.waiting.get(params.uri)?.(params.diagnostics);
    else if (id !== undefined) this.send({ id, result: configurationOf(params?.items) });
  }
}

/** The answer to what the server asks of an editor: its settings; null for everything else. */
const configurationOf = (items: readonly { section: string }[] | undefined) =>
  items?.map(({ section }) => (section === 'yaml' ? SETTINGS : {})) ?? null;
