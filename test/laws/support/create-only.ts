import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { loadAwsServiceSpecSync } from '@aws-cdk/aws-service-spec';

/** Written by `npx tsx scripts/create-only.ts`. */
export const FILE = path.join(__dirname, '../../fixtures/templates/create-only.json');

/** Services whose resources templates hold. */
const SERVICES = [
  ...['CloudFormation', 'CloudWatch', 'CodeBuild', 'CodePipeline', 'DynamoDB', 'EC2', 'ECR', 'Events', 'FSx', 'IAM'],
  ...['KMS', 'Lambda', 'Logs', 'Pipes', 'S3', 'SNS', 'SQS', 'SSM', 'SageMaker', 'Scheduler', 'StepFunctions'],
];

interface CreateOnly {
  version: string;
  /** Properties by type. */
  types: Record<string, string[]>;
}

/** The version of AWS's resource specification that is installed. */
export function specificationVersion(): string {
  const entry = createRequire(__filename).resolve('@aws-cdk/aws-service-spec');
  const file = path.join(path.dirname(entry), '..', 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** The text of FILE, from the specification; this reads all of it, which takes seconds. */
export function createOnlyFile(): string {
  const found = [...loadAwsServiceSpecSync().all('resource')].flatMap(({ cloudFormationType, properties }) => {
    const names = Object.entries(properties).filter(([, { causesReplacement }]) => causesReplacement === 'yes');
    const isOurs = SERVICES.includes(cloudFormationType.split('::')[1] ?? '');
    return isOurs ? [[cloudFormationType, names.map(([name]) => name)] as const] : [];
  });
  const types = Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
  const lines = Object.entries(types).map(([type, names]) => `    ${JSON.stringify(type)}: ${JSON.stringify(names)}`);
  return `{\n  "version": "${specificationVersion()}",\n  "types": {\n${lines.join(',\n')}\n  }\n}\n`;
}

/** What FILE holds. */
export const readCreateOnly = (): CreateOnly => JSON.parse(readFileSync(FILE, 'utf8')) as CreateOnly;
