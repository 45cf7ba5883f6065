import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Authority } from './access/authority';
import type { FaultTarget } from './faults/fault';
import type { FaultPlan } from './faults/fault-plan';
import { type ApiCall, credentialScope, parseBody, ServiceError, type ServiceModel, target } from './wire/api-call';
import { type Answer, errorAnswer } from './wire/http-server';
import { validateInput } from './wire/validate-input';

/** Answers calls of the JSON 1.1 APIs, by the prefix of X-Amz-Target, and applies planned faults to them. */
export class ApiServer {
  constructor(
    private readonly services: Readonly<Record<string, Service>>,
    private readonly authority: Authority,
    private readonly faults: FaultPlan,
  ) {}

  readonly handle = async (request: IncomingMessage, body: Buffer): Promise<Answer> => {
    const call = await this.callOf(request, body);
    const at: FaultTarget = { region: call.region, operation: call.operation, jobName: jobNameOf(call) };
    if (this.faults.strike('throttling', at)) throw throttled(call.service);
    const fault = this.faults.strike('call-error', at);
    const error = fault && new ServiceError(fault.code, fault.message, fault.status);
    if (error && !fault.committed) throw error;
    const answer = await this.perform(call).catch(errorAnswer);
    if (error) throw error;
    return this.faults.strike('response-lost', at) ? 'drop' : answer;
  };

  private async perform(call: ApiCall): Promise<Answer> {
    const service = this.services[call.service];
    const operation = service?.operations[call.operation];
    if (!service || !operation) {
      const message = `the sandbox does not implement ${call.service}.${call.operation}`;
      throw new ServiceError('UnknownOperationException', message, 404);
    }
    await this.authority.requireAllowed(call, service.tagsOf);
    validateInput(service.model, call.operation, call.input);
    return { status: 200, body: await operation(call) };
  }

  private async callOf(request: IncomingMessage, body: Buffer): Promise<ApiCall> {
    const { accessKeyId, region } = credentialScope(request.headers);
    const { service, operation } = target(request.headers);
    const headers = flatHeaders(request, body);
    const sessionToken = headers['x-amz-security-token'];
    const signed = { accessKeyId, sessionToken, method: request.method ?? '', path: request.url ?? '/', headers };
    const { account, caller } = await this.authority.identify(signed);
    return { service, operation, input: parseBody(body), region, account, caller };
  }
}

function throttled(service: string): ServiceError {
  const code = service === 'SageMaker' ? 'ThrottlingException' : 'TooManyRequestsException';
  return new ServiceError(code, 'Rate exceeded', service === 'SageMaker' ? 400 : 429);
}

/** Headers by lower-case name, with the digest of the body that the signature covers if the client did not send it. */
function flatHeaders(request: IncomingMessage, body: Buffer): Record<string, string> {
  const digest = createHash('sha256').update(body).digest('hex');
  const sent = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
  // A client's own digest is used only if it is correct; a wrong one makes the signature invalid.
  return { ...Object.fromEntries(sent), 'x-amz-content-sha256': digest };
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
