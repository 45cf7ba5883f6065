import type { ApiCall } from './wire/api-call';
import type { ServiceModel } from './wire/service-model';

/** One service: its model, which validates requests, and its operations. */
export interface Service {
  model: ServiceModel;
  operations: Readonly<Record<string, (call: ApiCall) => unknown>>;
  /** Tags of a resource by its ARN. @default - its resources have none */
  tagsOf?(arn: string): Readonly<Record<string, string>> | undefined;
}
