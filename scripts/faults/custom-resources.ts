import { DescribeStackResourcesCommand, GetTemplateCommand } from '@aws-sdk/client-cloudformation';
import { GetFunctionConfigurationCommand, InvokeCommand } from '@aws-sdk/client-lambda';
import { REGION, type World } from './world';

/** Our handler behind a custom resource of the deployed stack. */
export interface Handler {
  resourceType: string;
  logicalId: string;
  functionArn: string;
  /** Properties of the template that are plain text; what refers to other resources is left to the caller. */
  properties: Record<string, unknown>;
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
      return { resourceType: Type, logicalId, functionArn, properties: Properties };
    }),
  );
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
    StackId: `arn:aws:cloudformation:${REGION}:000000000000:stack/slipway-faults/recorded`,
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
