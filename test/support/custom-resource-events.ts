import type { CdkCustomResourceEvent } from 'aws-lambda';

/** Events of one custom resource as CloudFormation sends them through the provider framework. */
export function resourceEvents(resourceType: string, properties: Record<string, unknown>) {
  const common = {
    ServiceToken: 'arn:aws:lambda:us-west-2:111122223333:function:provider',
    ResponseURL: 'https://cloudformation.example/answer',
    StackId: 'arn:aws:cloudformation:us-west-2:111122223333:stack/Slipway/1',
    RequestId: 'request-1',
    LogicalResourceId: 'Resource',
    ResourceType: resourceType,
  };
  const given = { ServiceToken: common.ServiceToken, ...properties };
  return {
    create: (more: Record<string, unknown> = {}): CdkCustomResourceEvent => ({
      ...common,
      RequestType: 'Create',
      ResourceProperties: { ...given, ...more },
    }),
    update: (more: Record<string, unknown> = {}, old: Record<string, unknown> = {}): CdkCustomResourceEvent => ({
      ...common,
      RequestType: 'Update',
      PhysicalResourceId: 'physical-1',
      ResourceProperties: { ...given, ...more },
      OldResourceProperties: { ...given, ...old },
    }),
    delete: (more: Record<string, unknown> = {}): CdkCustomResourceEvent => ({
      ...common,
      RequestType: 'Delete',
      PhysicalResourceId: 'physical-1',
      ResourceProperties: { ...given, ...more },
    }),
  };
}
