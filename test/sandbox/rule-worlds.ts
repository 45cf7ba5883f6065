import { rmSync } from 'node:fs';
import {
  CloudFormationClient,
  CreateStackCommand,
  DeleteStackCommand,
  DescribeStackEventsCommand,
  DescribeStacksCommand,
  UpdateStackCommand,
} from '@aws-sdk/client-cloudformation';
import { eventually, type Sandbox, type SandboxOptions, startSandbox } from '../../lib/sandbox/testing';
import { clientOptions, temporaryFolder, tlsOptions, VENV } from './support';

export type Resources = Record<string, object>;

/** An embedded AWS with the rules or without them. */
export interface RuleWorld {
  sandbox: Sandbox;
  /** Options of a client of MiniStack's services. */
  options: ReturnType<typeof clientOptions>;
  cloudformation: CloudFormationClient;
}

export interface StackEnd {
  id: string;
  status: string;
  /** Reasons of the resources that failed, in order. */
  reasons: string[];
}

/** Two sandboxes: one with all rules, one with none, so that a test sees what a rule changes. */
export class RuleWorlds {
  private readonly folders: string[] = [];
  private worlds: RuleWorld[] = [];

  async open(options: SandboxOptions = {}): Promise<void> {
    // One after the other: the first may have to make the virtual environment.
    for (const rulesOff of [undefined, 'all'] as const) this.worlds.push(await this.start({ ...options, rulesOff }));
  }

  private async start(options: SandboxOptions): Promise<RuleWorld> {
    const stateDir = temporaryFolder();
    this.folders.push(stateDir);
    const sandbox = await startSandbox({ stateDir, venvDir: VENV, ...options });
    const client = {
      ...clientOptions(sandbox, sandbox.endpoints.aws),
      ...(options.auth ? tlsOptions(sandbox) : {}),
      forcePathStyle: true,
    };
    return { sandbox, options: client, cloudformation: new CloudFormationClient(client) };
  }

  /** What happens with the rules, and without them. */
  async both<T>(observe: (world: RuleWorld) => Promise<T>): Promise<{ applied: T; off: T }> {
    const [applied, off] = (await Promise.all(this.worlds.map(observe))) as [T, T];
    return { applied, off };
  }

  async close(): Promise<void> {
    for (const { sandbox } of this.worlds) await sandbox.stop();
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }
}

/** Creates a stack, with a role if one is given, and waits for its end. */
export async function stack(
  { cloudformation }: RuleWorld,
  StackName: string,
  resources: Resources,
  RoleARN?: string,
): Promise<StackEnd> {
  const TemplateBody = JSON.stringify({ Resources: resources });
  const { StackId = '' } = await cloudformation.send(
    new CreateStackCommand({ StackName, TemplateBody, RoleARN, Capabilities: ['CAPABILITY_NAMED_IAM'] }),
  );
  return ended(cloudformation, StackId);
}

/** Updates a stack and waits for its end. */
export async function updated({ cloudformation }: RuleWorld, id: string, resources: Resources): Promise<StackEnd> {
  const TemplateBody = JSON.stringify({ Resources: resources });
  await cloudformation.send(
    new UpdateStackCommand({ StackName: id, TemplateBody, Capabilities: ['CAPABILITY_NAMED_IAM'] }),
  );
  return ended(cloudformation, id);
}

/** Deletes a stack and waits for its end. */
export async function removed({ cloudformation }: RuleWorld, id: string): Promise<StackEnd> {
  await cloudformation.send(new DeleteStackCommand({ StackName: id }));
  return ended(cloudformation, id);
}

async function ended(client: CloudFormationClient, id: string): Promise<StackEnd> {
  const status = await eventually(
    async () => {
      const { Stacks } = await client.send(new DescribeStacksCommand({ StackName: id }));
      const now = Stacks?.[0]?.StackStatus ?? '';
      return !now.endsWith('IN_PROGRESS') && now;
    },
    { what: `end of stack ${id}`, intervalSeconds: 0.05 },
  );
  const { StackEvents = [] } = await client.send(new DescribeStackEventsCommand({ StackName: id }));
  const failed = StackEvents.filter(
    (event) => event.ResourceStatus?.endsWith('_FAILED') && event.ResourceType !== 'AWS::CloudFormation::Stack',
  );
  return { id, status, reasons: failed.map((event) => event.ResourceStatusReason ?? '').reverse() };
}

/** A role that a service may assume. */
export const roleFor = (service: string, statements: object[] = [], name?: string) => ({
  Type: 'AWS::IAM::Role',
  Properties: {
    RoleName: name,
    AssumeRolePolicyDocument: {
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { Service: service }, Action: 'sts:AssumeRole' }],
    },
    Policies: statements.length > 0 ? [{ PolicyName: 'own', PolicyDocument: policy(...statements) }] : undefined,
  },
});

export const policy = (...statements: object[]) => ({
  Version: '2012-10-17',
  Statement: statements.map((statement) => ({ Effect: 'Allow', ...statement })),
});

/** What a call answers, or the name of its error. */
export const errorOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'accepted',
    (error: Error) => error.name,
  );
