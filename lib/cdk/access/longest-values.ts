import { CfnResource, Stack, Token } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { REGIONS } from '../../core/catalog/regions';
import { type TemplateResource, TemplateValues } from '../../core/contracts/template-values';
import { ANY_ACCOUNT } from '../../shared/environment/template-sizes';

/** Properties of a name or path, as the constructs of CloudFormation's resources call them. */
const NAMED_BY = [
  'roleName',
  'path',
  'functionName',
  'name',
  'topicName',
  'queueName',
  'bucketName',
  'tableName',
  'repositoryName',
];

/** Measures values of a stack that has all resources to which they refer. */
export class LongestValues {
  private readonly values: TemplateValues;
  private readonly stack: Stack;

  constructor(scope: IConstruct) {
    const stack = Stack.of(scope);
    this.stack = stack;
    const resources = stack.node.findAll().filter((child) => CfnResource.isCfnResource(child));
    const { region, stackName, account } = stack;
    const { partition = 'aws', domain: urlSuffix = 'amazonaws.com' } = REGIONS[region] ?? {};
    const place = { partition, account: Token.isUnresolved(account) ? ANY_ACCOUNT : account, region, urlSuffix };
    const byId = resources.map((resource) => [String(stack.resolve(resource.logicalId)), named(stack, resource)]);
    this.values = new TemplateValues(Object.fromEntries(byId), { ...place, stack: stackName });
  }

  /** Length of a value as JSON, with every reference replaced by the longest text that it may stand for. */
  lengthOf(value: unknown): number {
    return JSON.stringify(this.values.resolve(this.stack.resolve(value))).length;
  }
}

function named(stack: Stack, resource: CfnResource): TemplateResource {
  const given = resource as unknown as Record<string, unknown> & { rawOverrides?: { Properties?: object } };
  const names = NAMED_BY.flatMap((name) => {
    const value: unknown = stack.resolve(given[name]);
    return value === undefined ? [] : [[`${name.charAt(0).toUpperCase()}${name.slice(1)}`, value] as const];
  });
  const overrides = stack.resolve(given.rawOverrides?.Properties) as object | undefined;
  return { Type: resource.cfnResourceType, Properties: { ...Object.fromEntries(names), ...overrides } };
}
