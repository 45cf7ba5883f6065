// An account of a company on the embedded AWS: its network and its boundary are there before the platform team comes, and people take on roles.
import path from 'node:path';
import { PYTHON } from '../../e2e/support/sandbox';
import type { PackedProject } from './packed-project';

/** AWS CLI of the working tree. */
export const AWS = path.join(path.dirname(PYTHON), 'aws');
export const REGION = 'us-west-2';
const BOUNDARY = {
  Version: '2012-10-17',
  Statement: [
    { Effect: 'Allow', Action: '*', Resource: '*' },
    { Effect: 'Deny', Action: ['iam:CreateUser', 'organizations:*'], Resource: '*' },
  ],
};

/** Ids of the network that the account has. */
export interface CompanyNetwork {
  vpcId: string;
  subnetIds: string[];
  securityGroupIds: string[];
}

export class CompanyAccount {
  /** Variables of the account's administrator. */
  readonly admin: Record<string, string>;
  private readonly sessions = new Map<string, Promise<Record<string, string>>>();

  constructor(
    readonly id: string,
    private readonly project: PackedProject,
    sandboxEnv: Record<string, string>,
  ) {
    const place = { AWS_ACCESS_KEY_ID: id, AWS_REGION: REGION, AWS_DEFAULT_REGION: REGION, SLIPWAY_POLL_SECONDS: '1' };
    this.admin = { ...sandboxEnv, ...place };
  }

  /** A call of the AWS CLI that must succeed, as the administrator; its answer. */
  async aws<T>(...words: string[]): Promise<T> {
    const { code, stdout, stderr } = await this.project.tryCall(this.admin, AWS, ...words, '--output', 'json');
    if (code !== 0) throw new Error(`aws ${words.join(' ')}: ${stderr}`);
    return JSON.parse(stdout || 'null') as T;
  }

  /** A VPC with two private subnets, a security group whose members reach each other, and a way to S3; and the boundary of all roles. */
  async prepare(): Promise<CompanyNetwork> {
    const { Vpc } = await this.aws<{ Vpc: { VpcId: string } }>('ec2', 'create-vpc', '--cidr-block', '10.20.0.0/16');
    const vpc = ['--vpc-id', Vpc.VpcId];
    const routes = await this.aws<{ RouteTable: { RouteTableId: string } }>('ec2', 'create-route-table', ...vpc);
    const table = routes.RouteTable.RouteTableId;
    const s3 = ['--service-name', `com.amazonaws.${REGION}.s3`, '--route-table-ids', table];
    await this.aws('ec2', 'create-vpc-endpoint', ...vpc, ...s3);
    const subnetIds: string[] = [];
    for (const [index, zone] of ['a', 'b'].entries()) {
      const place = ['--cidr-block', `10.20.${16 * index}.0/20`, '--availability-zone', `${REGION}${zone}`];
      const { Subnet } = await this.aws<{ Subnet: { SubnetId: string } }>('ec2', 'create-subnet', ...vpc, ...place);
      subnetIds.push(Subnet.SubnetId);
      await this.aws('ec2', 'associate-route-table', '--route-table-id', table, '--subnet-id', Subnet.SubnetId);
    }
    const { GroupId } = await this.aws<{ GroupId: string }>(
      ...['ec2', 'create-security-group', '--group-name', 'training', '--description', 'EFA', ...vpc],
    );
    const itself = `IpProtocol=-1,UserIdGroupPairs=[{GroupId=${GroupId}}]`;
    for (const way of ['ingress', 'egress'])
      await this.aws('ec2', `authorize-security-group-${way}`, '--group-id', GroupId, '--ip-permissions', itself);
    const boundary = ['--policy-name', 'ml-boundary', '--policy-document', JSON.stringify(BOUNDARY)];
    await this.aws('iam', 'create-policy', ...boundary);
    return { vpcId: Vpc.VpcId, subnetIds, securityGroupIds: [GroupId] };
  }

  /** The boundary denies an action as well, until it is restored. */
  async narrowBoundary(action: string): Promise<{ restore: () => Promise<void> }> {
    const policy = ['--policy-arn', `arn:aws:iam::${this.id}:policy/ml-boundary`];
    const denial = { Sid: 'Narrowed', Effect: 'Deny', Action: action, Resource: '*' };
    const become = async (Statement: readonly object[]) => {
      const document = ['--policy-document', JSON.stringify({ ...BOUNDARY, Statement }), '--set-as-default'];
      await this.aws('iam', 'create-policy-version', ...policy, ...document);
    };
    await become([...BOUNDARY.Statement, denial]);
    const restore = () => become(BOUNDARY.Statement);
    return { restore };
  }

  /** ARN of the role whose name holds these words. */
  async roleArn(words: string): Promise<string> {
    const { Roles } = await this.aws<{ Roles: { Arn: string }[] }>('iam', 'list-roles');
    const [found, ...others] = Roles.filter(({ Arn }) => Arn.includes(words));
    if (!found || others.length > 0) throw new Error(`one role must be called ${words}, got ${1 + others.length}`);
    return found.Arn;
  }

  /** Variables of somebody who has taken on a role; the session is kept for all later calls. */
  as(words: string): Promise<Record<string, string>> {
    const session = this.sessions.get(words) ?? this.assume(words);
    this.sessions.set(words, session);
    return session;
  }

  /** The next call takes on its role again: a role that was deleted and made again is another one. */
  endSessions(): void {
    this.sessions.clear();
  }

  private async assume(words: string): Promise<Record<string, string>> {
    const role = ['--role-arn', await this.roleArn(words), '--role-session-name', 'month'];
    const { Credentials: got } = await this.aws<{ Credentials: Record<string, string> }>('sts', 'assume-role', ...role);
    return {
      ...this.admin,
      AWS_ACCESS_KEY_ID: got.AccessKeyId ?? '',
      AWS_SECRET_ACCESS_KEY: got.SecretAccessKey ?? '',
      AWS_SESSION_TOKEN: got.SessionToken ?? '',
    };
  }

  /** Physical ids of what holds data, or what jobs run with, by logical id. */
  async identities(stack: string): Promise<Record<string, string>> {
    type Row = Record<'ResourceType' | 'LogicalResourceId' | 'PhysicalResourceId', string>;
    const words = ['cloudformation', 'list-stack-resources', '--stack-name', stack];
    const { StackResourceSummaries: all } = await this.aws<{ StackResourceSummaries: Row[] }>(...words);
    const held = all.filter(({ ResourceType }) => /::(Bucket|Table|Key|Role|Repository)$/.test(ResourceType));
    return Object.fromEntries(held.map((row) => [row.LogicalResourceId, row.PhysicalResourceId]));
  }

  /** Stacks that are there. */
  async stacks(): Promise<{ StackName: string }[]> {
    return (await this.aws<{ Stacks: { StackName: string }[] }>('cloudformation', 'describe-stacks')).Stacks;
  }

  /** Names of the environment's buckets. */
  async buckets(): Promise<string[]> {
    const { Buckets } = await this.aws<{ Buckets: { Name: string }[] }>('s3api', 'list-buckets');
    return Buckets.map(({ Name }) => Name).filter((name) => name.startsWith(`slipway-training-${this.id}-`));
  }

  /** Keys in one of them. @param purpose data, checkpoints, artifacts or logs */
  async objects(purpose: string, prefix: string): Promise<string[]> {
    const words = ['--bucket', `slipway-training-${this.id}-${REGION}-${purpose}`, '--prefix', prefix];
    const found = await this.aws<{ Contents?: { Key: string }[] } | null>('s3api', 'list-objects-v2', ...words);
    return (found?.Contents ?? []).map(({ Key }) => Key);
  }
}
