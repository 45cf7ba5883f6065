// One environment that is deployed, changed and deleted again and again by the real CDK CLI on the embedded AWS.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  CloudFormationClient,
  DescribeStacksCommand,
  paginateListStackResources,
} from '@aws-sdk/client-cloudformation';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { expect } from 'vitest';
import { GUARD_TYPE } from '../../../lib/core/contracts/custom-resources';
import type { EnvironmentValues } from '../../laws/support/family';
import { STATEFUL_TYPES } from '../../laws/support/identity';
import { ROOT, type TestSandbox, testSandbox } from './sandbox';

const CDK = path.join(ROOT, 'node_modules/.bin/cdk');
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');

/** The sections of an environment file, as YAML. */
export const sections = (file: EnvironmentValues): string =>
  Object.entries(file)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('');

/** A template as CloudFormation takes it. */
export interface CloudFormationTemplate {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown>; DependsOn?: string | string[] }>;
}

export class Cycle {
  readonly stackName: string;
  private assembly = '';
  private assemblies = 0;

  private constructor(
    readonly sandbox: TestSandbox,
    readonly name: string,
  ) {
    this.stackName = `Slipway-${name}-us-west-2`;
  }

  /** @param bootstrapOptions further options of `cdk bootstrap`, from the sandbox. @default - none */
  static async start(
    name: string,
    quotas?: Record<string, number>,
    bootstrapOptions?: (sandbox: TestSandbox) => Promise<readonly string[]>,
  ): Promise<Cycle> {
    const sandbox = await testSandbox(quotas && { quotas });
    const options = (await bootstrapOptions?.(sandbox)) ?? [];
    await sandbox.call(CDK, ['bootstrap', 'aws://000000000000/us-west-2', '--app', '', ...options]);
    return new Cycle(sandbox, name);
  }

  client() {
    return {
      endpoint: this.sandbox.endpoints.aws,
      region: 'us-west-2',
      credentials: { accessKeyId: '000000000000', secretAccessKey: 'test' },
    };
  }

  s3(): S3Client {
    return new S3Client({ ...this.client(), forcePathStyle: true });
  }

  /** Names of the environment's buckets. */
  async buckets(): Promise<string[]> {
    const { Buckets = [] } = await this.s3().send(new ListBucketsCommand({}));
    return Buckets.flatMap(({ Name }) => (Name?.startsWith(`slipway-${this.name}-`) ? [Name] : []));
  }

  /** State of the stack; undefined once it is gone. */
  status(): Promise<string | undefined> {
    return new CloudFormationClient(this.client())
      .send(new DescribeStacksCommand({ StackName: this.stackName }))
      .then(({ Stacks }) => Stacks?.[0]?.StackStatus as string | undefined)
      .catch(() => undefined);
  }

  /**
   * Synthesises an environment file; answers its template.
   * @param sections of the file, as YAML below name and regions
   */
  async synth(sections: string): Promise<CloudFormationTemplate> {
    const file = path.join(this.sandbox.folder, `${this.name}.yaml`);
    this.assembly = path.join(this.sandbox.folder, `cdk.out-${this.assemblies++}`);
    writeFileSync(file, `name: ${this.name}\nregions: { us-west-2: {} }\n${sections}`);
    const context = ['-c', `environment=${file}`, '-c', 'sandbox=1'];
    await this.sandbox.call(CDK, ['synth', '--quiet', '--output', this.assembly, ...context]);
    return JSON.parse(readFileSync(this.templateFile(), 'utf8')) as CloudFormationTemplate;
  }

  /** Puts another template into the place of the one that was synthesised last, under a digest of its own: the CDK uploads each once. */
  replaceTemplate(template: CloudFormationTemplate): void {
    const text = JSON.stringify(template);
    writeFileSync(this.templateFile(), text);
    const manifest = readFileSync(path.join(this.assembly, 'manifest.json'), 'utf8');
    const [, before = ''] = /"stackTemplateAssetObjectUrl": "[^"]*\/([0-9a-f]{64})\.json"/.exec(manifest) ?? [];
    const now = createHash('sha256').update(text).digest('hex');
    for (const name of readdirSync(this.assembly).filter((file) => /^manifest\.json$|\.assets\.json$/.test(file))) {
      const file = path.join(this.assembly, name);
      writeFileSync(file, readFileSync(file, 'utf8').replaceAll(before, now));
    }
  }

  /** Puts a failure at the end of what was synthesised last: a resource that cannot be made when all others are there. */
  failAtTheEnd(template: CloudFormationTemplate): void {
    const guard = Object.values(template.Resources).find(({ Type }) => Type === GUARD_TYPE);
    const Fault = {
      Type: 'Custom::Fault',
      Properties: { ServiceToken: guard?.Properties?.ServiceToken, guards: 'nothing' },
      DependsOn: Object.keys(template.Resources),
    };
    this.replaceTemplate({ ...template, Resources: { ...template.Resources, Fault } });
  }

  /** Deploys or destroys what was synthesised last, or a file that is synthesised first. */
  async cdk(command: 'deploy' | 'destroy', sections?: string): Promise<{ code: number; said: string }> {
    if (sections !== undefined) await this.synth(sections);
    const options = command === 'deploy' ? ['--method=direct', '--require-approval', 'never'] : ['--force'];
    const words = [command, '--all', '--app', this.assembly, ...options];
    const { code, stdout, stderr } = await this.sandbox.tryCall(CDK, words);
    return { code, said: `${stdout}${stderr}`.replace(/\s+/g, ' ') };
  }

  /** A command that must succeed; what it said is the failure's message. */
  async done(command: 'deploy' | 'destroy', sections?: string): Promise<void> {
    const { code, said } = await this.cdk(command, sections);
    expect([code, code === 0 ? '' : said]).toEqual([0, '']);
  }

  /** Physical ids of what holds data, or what jobs run in, by logical id. */
  async identities(): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    const client = new CloudFormationClient(this.client());
    for await (const page of paginateListStackResources({ client }, { StackName: this.stackName }))
      for (const {
        LogicalResourceId = '',
        PhysicalResourceId = '',
        ResourceType = '',
      } of page.StackResourceSummaries ?? [])
        if ((STATEFUL_TYPES as readonly string[]).includes(ResourceType)) found[LogicalResourceId] = PhysicalResourceId;
    return found;
  }

  /** The JSON that a verb prints about the default team. */
  async slipway(...args: string[]) {
    const where = ['--environment', `${this.name}/default`, '--region', 'us-west-2'];
    return JSON.parse(await this.sandbox.call(process.execPath, [CLI, ...args, ...where, '--json']));
  }

  end(): Promise<void> {
    return this.sandbox.end();
  }

  private templateFile(): string {
    const file = readdirSync(this.assembly).find((name) => name.endsWith('.template.json'));
    return path.join(this.assembly, file ?? '');
  }
}
