import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { adminOf, type Sandbox, startSandbox } from '../../lib/sandbox/testing';
import { ROOT, type Version } from './version';

const run = promisify(execFile);
export const REGION = 'us-west-2';
export const ACCOUNT = '000000000000';

export interface Outcome {
  ok: boolean;
  /** Everything that the command wrote, in one line. */
  said: string;
}

export interface SynthOptions {
  /** Files beside the environment file. */
  files?: Record<string, string>;
  /**
   * The template for AWS instead of the one for the embedded AWS.
   * @default false
   */
  isReal?: boolean;
}

export interface Template {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown> }>;
}

/** One version of the product on an embedded AWS with enforcement, with the rules or without them. */
export class TableWorld {
  private constructor(
    readonly version: Version,
    readonly hasRules: boolean,
    readonly folder: string,
    readonly sandbox: Sandbox,
  ) {}

  /** @param rulesOff rules that are left out; with `all` the world has none */
  static async open(version: Version, rulesOff: 'all' | readonly string[]): Promise<TableWorld> {
    const folder = mkdtempSync(path.join(tmpdir(), 'slipway-table-'));
    const sandbox = await startSandbox({
      stateDir: path.join(folder, 'state'),
      venvDir: path.join(ROOT, '.slipway/venv'),
      region: REGION,
      auth: true,
      rulesOff,
    });
    const world = new TableWorld(version, rulesOff !== 'all', folder, sandbox);
    await world.cdk('bootstrap', `aws://${ACCOUNT}/${REGION}`, '--app', '');
    return world;
  }

  /** Options of SDK clients: root of the account. */
  get client() {
    const ca = readFileSync(this.sandbox.env.AWS_CA_BUNDLE ?? '');
    return {
      endpoint: this.sandbox.endpoints.aws,
      region: REGION,
      credentials: { accessKeyId: ACCOUNT, secretAccessKey: 'test' },
      forcePathStyle: true,
      maxAttempts: 1,
      requestHandler: { httpsAgent: new https.Agent({ ca }) },
    };
  }

  get admin() {
    return adminOf(this.sandbox);
  }

  /** Synthesises an environment of the version; `lines` follow its name and Region. Answers the folder of the assembly. */
  async synth(name: string, lines: string, options: SynthOptions = {}): Promise<string> {
    const folder = mkdtempSync(path.join(this.folder, `${name}-`));
    const head = `name: ${name}\nregions: { ${REGION}: {} }\nquotas: { enforce: "off" }\n`;
    const files = { ...options.files, [`${name}.yaml`]: `${head}${lines}` };
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      writeFileSync(path.join(folder, file), text);
    }
    const assembly = path.join(folder, 'cdk.out');
    const context = {
      environment: path.join(folder, `${name}.yaml`),
      checks: 'off',
      sandbox: options.isReal ? '0' : '1',
    };
    const words = Object.entries(context).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const made = await this.cdk('synth', '--quiet', '--output', assembly, ...words);
    if (!made.ok) throw new Error(`${name}: must synthesise, got ${made.said.slice(-800)}`);
    return assembly;
  }

  deploy(assembly: string): Promise<Outcome> {
    return this.cdk('deploy', '--all', '--app', assembly, '--method=direct', '--require-approval', 'never');
  }

  destroy(assembly: string): Promise<Outcome> {
    return this.cdk('destroy', '--all', '--app', assembly, '--force');
  }

  /** The template of an assembly's stack. */
  template(assembly: string): Template {
    const file = readdirSync(assembly).find((name) => name.endsWith('.template.json')) ?? '';
    return JSON.parse(readFileSync(path.join(assembly, file), 'utf8')) as Template;
  }

  /** State of a stack and its reason; `gone` when there is none. */
  status(name: string): Promise<string> {
    return new CloudFormationClient(this.client)
      .send(new DescribeStacksCommand({ StackName: `Slipway-${name}-${REGION}` }))
      .then(({ Stacks }) => [Stacks?.[0]?.StackStatus, Stacks?.[0]?.StackStatusReason].filter(Boolean).join(': '))
      .catch(() => 'gone');
  }

  async cdk(...words: string[]): Promise<Outcome> {
    const program = path.join(this.version.folder, 'node_modules/.bin/cdk');
    const env = {
      PATH: process.env.PATH ?? '',
      HOME: this.folder,
      NODE_NO_WARNINGS: '1',
      CI: '1',
      NO_COLOR: '1',
      CDK_DEFAULT_ACCOUNT: ACCOUNT,
      CDK_DEFAULT_REGION: REGION,
      ...this.sandbox.env,
    };
    const inOneLine = (...texts: string[]) => texts.join(' ').replace(/\s+/g, ' ');
    try {
      const { stdout, stderr } = await run(program, words, { cwd: this.version.folder, env, maxBuffer: 1 << 26 });
      return { ok: true, said: inOneLine(stdout, stderr) };
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      return { ok: false, said: inOneLine(stdout, stderr) };
    }
  }

  async close(): Promise<void> {
    await this.sandbox.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
