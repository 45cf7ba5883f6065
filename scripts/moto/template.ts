import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  CloudFormationClient,
  CreateStackCommand,
  DescribeStackEventsCommand,
  DescribeStackResourcesCommand,
  DescribeStacksCommand,
} from '@aws-sdk/client-cloudformation';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { ACCOUNT, type Emulator, REGION } from './servers';
import { MOTO_FAULTS } from './template-expected';

const ROOT = path.resolve(__dirname, '..', '..');
const ASSETS = `cdk-hnb659fds-assets-${ACCOUNT}-${REGION}`;

/** Types that need what a second emulator has not: functions that answer CloudFormation, and builds. */
const NEEDS_FUNCTIONS = /^(Custom::|AWS::CloudFormation::CustomResource|AWS::CDK::)/;

interface Template {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown> }>;
}

/** What became of the template. */
export interface TemplateDeploy {
  status: string;
  /** Why the stack failed, in moto's words. */
  reason: string;
  /** Number of resources by type that are in the stack. */
  made: Record<string, number>;
  /** Types of the template that have no resource in the stack. */
  unsupported: string[];
  /** `Type.Attribute` that Fn::GetAtt of the template asks for and moto does not answer. */
  attributes: string[];
  /** Types of which the stack has some resources, but not all that the template has. */
  incomplete: string[];
  /** Types that were left out because they need running functions. */
  leftOut: string[];
}

/** Deploys the template for AWS, not the one for the sandbox, of a default environment. */
export async function deployTemplate(emulator: Emulator): Promise<TemplateDeploy> {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-template-'));
  try {
    const whole = synthesise(folder, emulator);
    const lacking: Lacking = { types: [], attributes: [] };
    for (;;) {
      // A refused stack leaves what it made until then.
      await fetch(`${emulator.endpoint}/moto-api/reset`, { method: 'POST', signal: AbortSignal.timeout(30_000) });
      await stage(emulator, whole);
      const found = await deploy(emulator, without(whole, lacking));
      if (!learn(whole, found.reason, lacking)) return summary(whole, found, lacking);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What moto's refusals have said so far that it does not know. */
interface Lacking {
  types: string[];
  /** `Type.Attribute` of Fn::GetAtt. */
  attributes: string[];
}

/** Takes one more thing out of a refusal; false when it says nothing new. */
function learn({ Resources }: Template, reason: string, lacking: Lacking): boolean {
  const [, id = ''] = /references undefined resource (\w+)/.exec(reason) ?? [];
  const [, owner = '', attribute = ''] = /resource (\w+) does not support attribute type (\w+)/.exec(reason) ?? [];
  const type = Resources[id]?.Type;
  const name = `${Resources[owner]?.Type}.${attribute}`;
  if (type && !lacking.types.includes(type)) return lacking.types.push(type) > 0;
  if (attribute && !lacking.attributes.includes(name)) return lacking.attributes.push(name) > 0;
  return false;
}

function synthesise(folder: string, emulator: Emulator): Template {
  const file = path.join(folder, 'template.yaml');
  const network = 'network: { availabilityZoneIds: [usw2-az1, usw2-az2] }';
  writeFileSync(file, `name: template\naccount: "${ACCOUNT}"\nregions: { ${REGION}: {} }\n${network}\n`);
  const output = path.join(folder, 'cdk.out');
  const context = [`environment=${file}`, 'sandbox=0', 'checks=off'].flatMap((pair) => ['-c', pair]);
  const env = { ...process.env, ...emulator.env, NODE_NO_WARNINGS: '1' };
  const cdk = path.join(ROOT, 'node_modules/.bin/cdk');
  execFileSync(cdk, ['synth', '--quiet', '--output', output, ...context], { cwd: ROOT, env, stdio: 'pipe' });
  const name = readdirSync(output).find((each) => each.endsWith('.template.json')) ?? '';
  return JSON.parse(readFileSync(path.join(output, name), 'utf8')) as Template;
}

/** The template without what moto lacks and without functions; who refers to one of these gets a text in its place. */
function without(template: Template, { types, attributes }: Lacking): Template {
  const typeOf = (id: unknown) => (typeof id === 'string' ? (template.Resources[id]?.Type ?? '') : '');
  const isOut = (id: unknown) => NEEDS_FUNCTIONS.test(typeOf(id)) || types.includes(typeOf(id));
  const cut = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(cut);
    if (typeof value !== 'object' || value === null) return value;
    const { Ref: ref, 'Fn::GetAtt': [owner, attribute] = [] } = value as { Ref?: string; 'Fn::GetAtt'?: string[] };
    if (isOut(ref) || isOut(owner) || attributes.includes(`${typeOf(owner)}.${attribute}`)) return LEFT_OUT;
    const entries = Object.entries(value).map(([key, each]): [string, unknown] =>
      key === 'DependsOn' ? [key, ([] as unknown[]).concat(each).filter((id) => !isOut(id))] : [key, cut(each)],
    );
    return Object.fromEntries(entries);
  };
  const kept = Object.entries(template.Resources).filter(([id]) => !isOut(id));
  const { Rules: _, ...rest } = template as Template & { Rules?: object };
  return cut({ ...rest, Resources: Object.fromEntries(kept.map(withoutFaults)) }) as Template;
}

function withoutFaults([id, resource]: [string, Template['Resources'][string]]): [string, object] {
  const faults = MOTO_FAULTS.filter(({ type }) => type === resource.Type);
  const properties = faults.reduce((kept, { instead }) => instead(id, kept), resource.Properties ?? {});
  return [id, { ...resource, Properties: properties }];
}

const client = ({ endpoint }: Emulator) => ({
  endpoint,
  region: REGION,
  credentials: { accessKeyId: ACCOUNT, secretAccessKey: 'test' },
  forcePathStyle: true,
  maxAttempts: 1,
});

/** What `cdk bootstrap` and the publishing of assets leave: the version, the bucket, and an archive under every key. */
async function stage(emulator: Emulator, template: Template): Promise<void> {
  const Name = '/cdk-bootstrap/hnb659fds/version';
  await new SSMClient(client(emulator)).send(new PutParameterCommand({ Name, Type: 'String', Value: '30' }));
  const s3 = new S3Client(client(emulator));
  const LocationConstraint = REGION;
  await s3.send(new CreateBucketCommand({ Bucket: ASSETS, CreateBucketConfiguration: { LocationConstraint } }));
  const keys = new Set(JSON.stringify(template).match(/\b[0-9a-f]{64}\.(zip|json)\b/g));
  const archive = Buffer.from('UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==', 'base64');
  for (const Key of keys) await put(emulator, Key, archive);
}

async function put(emulator: Emulator, Key: string, Body: string | Buffer): Promise<void> {
  await new S3Client(client(emulator)).send(new PutObjectCommand({ Bucket: ASSETS, Key, Body }));
}

/** What stands for a reference to a resource that is left out: policies take ARNs alone. */
const LEFT_OUT = 'arn:aws:s3:::left-out';

interface StackEnd {
  status: string;
  reason: string;
  made: Record<string, number>;
}

async function deploy(emulator: Emulator, template: Template): Promise<StackEnd> {
  await put(emulator, 'template.json', JSON.stringify(template));
  const cloudformation = new CloudFormationClient(client(emulator));
  const StackName = 'template';
  const TemplateURL = `https://s3.${REGION}.amazonaws.com/${ASSETS}/template.json`;
  const create = new CreateStackCommand({ StackName, TemplateURL, Capabilities: ['CAPABILITY_NAMED_IAM'] });
  const failure = await cloudformation.send(create).then(
    () => undefined,
    (error: Error) => error,
  );
  if (failure) return { status: 'refused', reason: failure.message.slice(0, 400), made: {} };
  const { Stacks: [stack] = [] } = await cloudformation.send(new DescribeStacksCommand({ StackName }));
  const { StackResources = [] } = await cloudformation.send(new DescribeStackResourcesCommand({ StackName }));
  const { StackEvents = [] } = await cloudformation.send(new DescribeStackEventsCommand({ StackName }));
  const made: Record<string, number> = {};
  // A resource of a type that moto does not know is an entry without a name.
  for (const { LogicalResourceId: id = '' } of StackResources) {
    const type = template.Resources[id]?.Type;
    if (type) made[type] = (made[type] ?? 0) + 1;
  }
  const failed = StackEvents.find(({ ResourceStatus }) => ResourceStatus?.endsWith('FAILED'));
  return { status: stack?.StackStatus ?? '', reason: failed?.ResourceStatusReason ?? '', made };
}

function summary(whole: Template, end: StackEnd, { attributes }: Lacking): TemplateDeploy {
  const types = [...new Set(Object.values(whole.Resources).map(({ Type }) => Type))].sort();
  const leftOut = types.filter((type) => NEEDS_FUNCTIONS.test(type));
  const wanted = (type: string) => Object.values(whole.Resources).filter(({ Type }) => Type === type).length;
  return {
    ...end,
    unsupported: types.filter((type) => !end.made[type] && !leftOut.includes(type)),
    attributes,
    incomplete: types.filter((type) => end.made[type] && end.made[type] !== wanted(type)),
    leftOut,
  };
}
