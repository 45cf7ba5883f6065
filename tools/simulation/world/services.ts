import type { Gateway } from '../core/gateway';
import type { SimTable } from '../services/dynamodb';
import type { SimQueue } from '../services/queue';
import type { SimS3 } from '../services/s3';
import type { SimSageMaker } from '../services/sagemaker';
import {
  eventBus,
  lambdaService,
  notifications,
  type Published,
  parameterStore,
  serviceQuotas,
} from '../services/small-services';

interface Services {
  table: SimTable;
  queue: SimQueue;
  s3: SimS3;
  sagemaker: SimSageMaker;
  /** Parameters of SSM by name. */
  parameters: ReadonlyMap<string, string>;
  limitOf: Parameters<typeof serviceQuotas>[0];
  onPublish(published: Published): void;
  invoke: Parameters<typeof lambdaService>[0];
}

/** Registers every service that the functions call at the gateway. */
export function addServices(gateway: Gateway, services: Services): void {
  gateway.add('dynamodb', services.table.operations);
  gateway.add('sqs', services.queue.operations);
  gateway.add('s3', services.s3.operations);
  gateway.add('sagemaker', services.sagemaker.operations);
  gateway.add('ssm', parameterStore(services.parameters));
  gateway.add('servicequotas', serviceQuotas(services.limitOf));
  gateway.add('sns', notifications(services.onPublish));
  gateway.add('eventbridge', eventBus());
  gateway.add('lambda', lambdaService(services.invoke));
}
