import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Authority } from './access/authority';
import type { FaultTarget } from './faults/fault';
import type { FaultPlan } from './faults/fault-plan';
import { type ApiCall, credentialScope, parseBody, ServiceError, type ServiceModel, target } from './wire/api-call';
import { errorAnswer, type Handler } from './wire/http-server';
import { validateInput } from './wire/validate-input';

type Services = Readonly<Record<string, Service>>;

/** Answers calls of the JSON 1.1 APIs, by the prefix of X-Amz-Target, and applies planned faults to them. */
export function apiHandler(services: Services, authority: Authority, faults: FaultPlan): Handler {
  return async (request, body) => {
    const call = await callOf(request, body, authority);
    const at: FaultTarget = { region: call.region, operation: call.operation, jobName: jobNameOf(call) };
    if (faults.strike('throttling', at)) throw throttled(call.service);
    const fault = faults.strike('call-error', at);
    const error = fault && new ServiceError(fault.code, fault.message, fault.status);
    if (error && !fault.committed) throw error;
    const answer = await perform(call, services, authority).then(
      (result) => ({ status: 200, body: result }),
      errorAnswer,
    );
    if (error) throw error;
    return faults.strike('response-lost', at) ? 'drop' : answer;
  };
}

async function perform(call: ApiCall, services: Services, authority: Authority): Promise<unknown> {
  const service = services[call.service];
  const operation = service?.operations[call.operation];
  if (!service || !operation) {
    const message = `the sandbox does not implement ${call.service}.${call.operation}`;
    throw new ServiceError('UnknownOperationException', message, 404);
  }
  await authority.requireAllowed(call, service.tagsOf);
  validateInput(service.model, call.operation, call.input);
  return operation(call);
}

async function callOf(request: IncomingMessage, body: Buffer, authority: Authority): Promise<ApiCall> {
  const { accessKeyId, region } = credentialScope(request.headers);
  const { service, operation } = target(request.headers);
  const sent = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
  // The digest that the signature covers: a client's own one is used only if it is correct; a wrong one makes the signature invalid.
  const digest = createHash('sha256').update(body).digest('hex');
  const headers: Record<string, string> = { ...Object.fromEntries(sent), 'x-amz-content-sha256': digest };
  const sessionToken = headers['x-amz-security-token'];
  const signed = { accessKeyId, sessionToken, method: request.method ?? '', path: request.url ?? '/', headers };
  const { account, caller } = await authority.identify(signed);
  return { service, operation, input: parseBody(body), region, account, caller };
}

function throttled(service: string): ServiceError {
  const code = service === 'SageMaker' ? 'ThrottlingException' : 'TooManyRequestsException';
  return new ServiceError(code, 'Rate exceeded', service === 'SageMaker' ? 400 : 429);
}

function jobNameOf({ input }: ApiCall): string | undefined {
  const name = input.TrainingJobName ?? input.ProcessingJobName;
  return name === undefined ? undefined : String(name);
}

/** One service: its model, which validates requests, and its operations. */
export interface Service {
  model: ServiceModel;
  operations: Readonly<Record<string, (call: ApiCall) => unknown>>;
  /** Tags of a resource by its ARN. @default - its resources have none */
  tagsOf?(arn: string): Readonly<Record<string, string>> | undefined;
}
