import { DescribeStackResourcesCommand, GetTemplateCommand } from '@aws-sdk/client-cloudformation';
import { GetFunctionConfigurationCommand, InvokeCommand } from '@aws-sdk/client-lambda';
import { REGION, type World } from './world';

/** Our handler behind a custom resource of the deployed stack. */
export interface Handler {
  resourceType: string;
  logicalId: string;
  functionArn: string;
  /** Properties of the template, with references to resources of the stack resolved. */
  properties: Record<string, unknown>;
  stackId: string;
}

interface Template {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown> }>;
}

/** Every custom resource of ours, with the function that CloudFormation's events reach in the end. */
export async function handlersOf(world: World): Promise<Handler[]> {
  const StackName = `Slipway-faults-${REGION}`;
  const { TemplateBody } = await world.cloudformation.send(new GetTemplateCommand({ StackName }));
  const { StackResources } = await world.cloudformation.send(new DescribeStackResourcesCommand({ StackName }));
  const physical = new Map(StackResources?.map((r) => [r.LogicalResourceId, r.PhysicalResourceId]));
  const { Resources } = parseTemplate(TemplateBody);
  const custom = Object.entries(Resources).filter(([, r]) => r.Type.startsWith('Custom::Slipway'));
  return Promise.all(
    custom.map(async ([logicalId, { Type, Properties = {} }]) => {
      const token = (Properties.ServiceToken as { 'Fn::GetAtt'?: string[] })['Fn::GetAtt']?.[0] ?? '';
      const FunctionName = physical.get(token) ?? '';
      const { Environment } = await world.lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
      const functionArn = Environment?.Variables?.USER_ON_EVENT_FUNCTION_ARN ?? '';
      const properties = resolve(Properties, physical) as Record<string, unknown>;
      return { resourceType: Type, logicalId, functionArn, properties, stackId: StackResources?.[0]?.StackId ?? '' };
    }),
  );
}

/** A value of a template as CloudFormation sends it: `Ref` and `Fn::Join` resolved, other functions as they are. */
function resolve(value: unknown, physical: ReadonlyMap<string | undefined, string | undefined>): unknown {
  if (Array.isArray(value)) return value.map((item) => resolve(item, physical));
  if (typeof value !== 'object' || value === null) return value;
  const { Ref, 'Fn::Join': join } = value as { Ref?: string; 'Fn::Join'?: [string, unknown[]] };
  if (Ref !== undefined) return physical.get(Ref) ?? value;
  if (join) return join[1].map((part) => resolve(part, physical)).join(join[0]);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, physical)]));
}

const parseTemplate = (body: unknown): Template =>
  (typeof body === 'string' ? JSON.parse(body) : body) as unknown as Template;

export type ResourceEvent = {
  RequestType: 'Create' | 'Update' | 'Delete';
  PhysicalResourceId?: string;
  ResourceProperties: Record<string, unknown>;
  OldResourceProperties?: Record<string, unknown>;
};

/** An event as CloudFormation records it. `refused` has the reason of an error. */
export async function send(
  world: World,
  handler: Handler,
  event: ResourceEvent,
): Promise<{ id?: string; data?: unknown; refused?: string }> {
  const Payload = JSON.stringify({
    StackId: handler.stackId,
    RequestId: 'recorded',
    ResourceType: handler.resourceType,
    LogicalResourceId: handler.logicalId,
    ResponseURL: 'https://example.invalid',
    ServiceToken: handler.functionArn,
    ...event,
  });
  const answer = await world.lambda.send(new InvokeCommand({ FunctionName: handler.functionArn, Payload }));
  const body = JSON.parse(Buffer.from(answer.Payload ?? []).toString() || 'null') as {
    PhysicalResourceId?: string;
    Data?: unknown;
    errorMessage?: string;
  } | null;
  if (answer.FunctionError || body?.errorMessage) return { refused: body?.errorMessage ?? 'an error without words' };
  return { id: body?.PhysicalResourceId, data: body?.Data };
}
