import { setTimeout as sleep } from 'node:timers/promises';
import { DescribeSecurityGroupsCommand, DescribeSubnetsCommand, EC2Client } from '@aws-sdk/client-ec2';
import { DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { GetRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { quotaIssues } from '../admission';
import { findInstanceType } from '../catalog/instances';
import { launchOutcome, type QuotaRow, quotaTable, runQuotaNeeds, shortRows } from '../quota';
import type { Descriptor } from '../spec/descriptor';
import { bareIssue, type Issue, issue } from '../spec/issue';
import { isEnvironmentFile } from '../spec/load';
import { requestedGroupsOf } from '../spec/resolve-run';
import type { RunSpec } from '../spec/run-spec';
import { textTable } from '../spec/text-table';
import { findDescriptor } from './environment';
import { environmentIn, needsOfEnvironment, requireEnvironment } from './environment-file';
import { EXIT, Refusal } from './exit';
import { type CommonOptions, readText, requireRun } from './inputs';
import { quotaJson, quotaRows } from './quota';
import { json, type Terminal } from './terminal';

export interface Check {
  name: string;
  verdict: 'ok' | 'failed' | 'unknown';
  detail: string;
}

/** EFA interfaces of one instance take up to five addresses (facts/training-job.md 4.5). */
const ADDRESSES_PER_EFA_INSTANCE = 5;
const ADDRESSES_PER_INSTANCE = 2;

/** `slipway preflight FILE`: quotas, and what the account must hold for the run. */
export async function preflight(file: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  const text = readText(file);
  if (isEnvironmentFile(text)) return environmentPreflight(file, text, options, terminal);
  const descriptor = await findDescriptor(options, requireRun(file, options).run.environment);
  const { run, issues } = requireRun(file, options, descriptor);
  const [rows, checks] = await Promise.all([
    quotaRows(runQuotaNeeds(run), descriptor.region),
    accountChecks(run, descriptor),
  ]);
  const found = [...issues, ...quotaIssues(rows), ...checkIssues(checks)];
  return report({ rows, checks, issues: found }, options, terminal);
}

async function environmentPreflight(
  file: string,
  text: string,
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  const disk = requireEnvironment(file, text, options);
  const environment = environmentIn(disk, file, options);
  const rows = await quotaRows(needsOfEnvironment(disk, environment), environment.region);
  return report({ rows, checks: [], issues: [...disk.issues.map(bareIssue), ...quotaIssues(rows)] }, options, terminal);
}

interface Result {
  rows: QuotaRow[];
  checks: Check[];
  issues: Issue[];
}

function report({ rows, checks, issues }: Result, options: CommonOptions, terminal: Terminal): number {
  const ok = !issues.some((i) => i.level === 'error');
  if (options.json) terminal.out(json({ ok, issues, quotas: rows.map(quotaJson), checks }));
  else {
    terminal.out(quotaTable(rows));
    if (checks.length > 0)
      terminal.out(
        `\n${textTable(
          ['check', 'verdict', 'detail'],
          checks.map((c) => [c.name, c.verdict, c.detail]),
        )}`,
      );
    for (const found of issues) terminal.err(`${found.level}: ${found.message}`);
  }
  return ok ? EXIT.done : EXIT.refused;
}

/** What launch asks of preflight: needs above a limit refuse, needs above what is free wait in the queue. */
export async function preflightRun(run: RunSpec, descriptor: Descriptor, terminal: Terminal): Promise<void> {
  const rows = await quotaRows(runQuotaNeeds(run), descriptor.region);
  const outcome = launchOutcome(rows);
  if (outcome === 'refuse') throw new Refusal(quotaIssues(rows), { quotas: rows.map(quotaJson) });
  if (outcome === 'wait') terminal.err(`quota: the run will wait for free instances\n${quotaTable(shortRows(rows))}`);
  if (outcome === 'unknown')
    terminal.err(
      `quota: ${rows
        .filter((r) => r.verdict === 'unknown')
        .map((r) => `${r.name}: ${r.reason}`)
        .join('; ')}`,
    );
}

const checkIssues = (checks: readonly Check[]): Issue[] =>
  checks
    .filter((c) => c.verdict !== 'ok')
    .map((c) =>
      issue(`preflight/${c.name.replaceAll(' ', '-')}`, c.verdict === 'failed' ? 'error' : 'warning', '', {
        must: `must have a usable ${c.name}`,
        got: c.detail,
        fix: 'deploy the environment again, or ask the platform team',
      }),
    );

async function accountChecks(run: RunSpec, descriptor: Descriptor): Promise<Check[]> {
  const { region } = descriptor;
  const retry = { region, maxAttempts: 3 };
  const s3 = new S3Client(retry);
  const ec2 = new EC2Client(retry);
  return Promise.all([
    check('execution role', async () => {
      const name = descriptor.executionRoleArn.split('/').pop() ?? '';
      await new IAMClient(retry).send(new GetRoleCommand({ RoleName: name }));
      return name;
    }),
    ...(['dataBucket', 'checkpointBucket', 'artifactBucket'] as const).map((key) =>
      check(key.replace('Bucket', ' bucket'), async () => {
        // A researcher's role lists the team's own prefix of these buckets, and a HeadBucket asks for the whole.
        const Prefix = key === 'dataBucket' ? undefined : `runs/${descriptor.team}/`;
        await s3.send(new ListObjectsV2Command({ Bucket: descriptor[key], Prefix, MaxKeys: 1 }));
        return descriptor[key];
      }),
    ),
    ...(run.image.kind === 'environment' ? [check('training image', () => imageDetail(descriptor, region))] : []),
    ...(descriptor.subnetIds.length > 0
      ? [
          check('free addresses', () => addressDetail(ec2, run, descriptor)),
          check('security group', () => securityGroupDetail(ec2, run, descriptor)),
        ]
      : []),
  ]);
}

/** A failed requirement, as opposed to a call that failed. */
class Unmet extends Error {}

const MISSING = [
  'NoSuchEntity',
  'NoSuchEntityException',
  'NotFound',
  'NoSuchBucket',
  'ImageNotFoundException',
  'RepositoryNotFoundException',
  'InvalidSubnetID.NotFound',
  'InvalidGroup.NotFound',
];

async function check(name: string, look: () => Promise<string>): Promise<Check> {
  for (let attempt = 1; ; attempt++) {
    try {
      return { name, verdict: 'ok', detail: await look() };
    } catch (error) {
      const { name: kind, message } = error as Error;
      if (error instanceof Unmet || MISSING.includes(kind)) return { name, verdict: 'failed', detail: message };
      if (!/Throttl/.test(kind) || attempt === 3) return { name, verdict: 'unknown', detail: `${kind}: ${message}` };
      await sleep(500 * attempt);
    }
  }
}

async function imageDetail({ trainingImageUri }: Descriptor, region: string): Promise<string> {
  const uri = /^\d{12}\.dkr\.ecr\.[^/]+\/([^:@]+)(?::([^@]+))?(?:@(sha256:.+))?$/.exec(trainingImageUri ?? '');
  if (!uri) throw new Unmet(trainingImageUri ? `${trainingImageUri} is not in ECR` : 'the environment has none');
  const [, repositoryName, imageTag, imageDigest] = uri;
  await new ECRClient({ region }).send(
    new DescribeImagesCommand({ repositoryName, imageIds: [imageDigest ? { imageDigest } : { imageTag }] }),
  );
  return trainingImageUri ?? '';
}

async function addressDetail(ec2: EC2Client, run: RunSpec, descriptor: Descriptor): Promise<string> {
  const { Subnets = [] } = await ec2.send(new DescribeSubnetsCommand({ SubnetIds: descriptor.subnetIds }));
  const needed = requestedGroupsOf(run.compute).reduce((sum, g) => {
    const efa = (findInstanceType(g.instanceType)?.efaInterfaces ?? 0) > 0;
    return sum + g.instanceCount * (efa ? ADDRESSES_PER_EFA_INSTANCE : ADDRESSES_PER_INSTANCE);
  }, 0);
  const most = Math.max(0, ...Subnets.map((s) => s.AvailableIpAddressCount ?? 0));
  // All instances of a job land in one zone, so one subnet must hold them.
  if (most < needed) throw new Unmet(`${needed} addresses are needed in one subnet, the largest has ${most}`);
  return `${needed} needed, ${most} free in one subnet`;
}

async function securityGroupDetail(ec2: EC2Client, run: RunSpec, descriptor: Descriptor): Promise<string> {
  const { SecurityGroups = [] } = await ec2.send(
    new DescribeSecurityGroupsCommand({ GroupIds: descriptor.securityGroupIds }),
  );
  if (run.network.efa !== 'required') return descriptor.securityGroupIds.join(', ');
  const self = (
    permissions: { IpProtocol?: string; UserIdGroupPairs?: { GroupId?: string }[] }[] | undefined,
    id: string | undefined,
  ) => (permissions ?? []).some((p) => p.IpProtocol === '-1' && p.UserIdGroupPairs?.some((g) => g.GroupId === id));
  const good = SecurityGroups.find((g) => self(g.IpPermissions, g.GroupId) && self(g.IpPermissionsEgress, g.GroupId));
  if (!good) throw new Unmet('no group allows all traffic from and to itself, which EFA needs');
  return `${good.GroupId} allows all traffic from and to itself`;
}
