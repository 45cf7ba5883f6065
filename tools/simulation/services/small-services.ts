import type { PutEventsCommandInput } from '@aws-sdk/client-eventbridge';
import type { InvokeCommandInput } from '@aws-sdk/client-lambda';
import type { GetServiceQuotaCommandInput } from '@aws-sdk/client-service-quotas';
import type { PublishCommandInput } from '@aws-sdk/client-sns';
import type { GetParameterCommandInput } from '@aws-sdk/client-ssm';
import type { Operations } from '../core/operation';
import { serviceError } from '../core/service-error';

/** Parameters by name; they do not change during a scenario. */
export function parameterStore(parameters: ReadonlyMap<string, string>): Operations {
  return {
    GetParameter: {
      latencyMs: 12,
      knows: ['Name'],
      key: (input: GetParameterCommandInput) => input.Name,
      run: ({ Name = '' }: GetParameterCommandInput) => {
        const Value = parameters.get(Name);
        if (Value === undefined) throw serviceError('ParameterNotFound', `${Name} does not exist`, 400);
        return { Parameter: { Name, Value }, $metadata: {} };
      },
    },
  };
}

/** @param limitOf the applied limit of a quota code; undefined when the Region has no such quota */
export function serviceQuotas(limitOf: (code: string) => number | undefined): Operations {
  return {
    GetServiceQuota: {
      latencyMs: 50,
      key: (input: GetServiceQuotaCommandInput) => input.QuotaCode,
      run: ({ QuotaCode = '' }: GetServiceQuotaCommandInput) => {
        const Value = limitOf(QuotaCode);
        if (Value === undefined)
          throw serviceError('NoSuchResourceException', 'The request failed because the quota does not exist.', 400);
        return { Quota: { QuotaCode, Value }, $metadata: {} };
      },
    },
  };
}

/** A message that SNS accepted. */
export interface Published {
  id: string | undefined;
  runId: string | undefined;
  subject: string;
  message: string;
}

/** https://docs.aws.amazon.com/sns/latest/api/API_Publish.html, which SQS shares. */
export const MAX_MESSAGE_BYTES = 256 * 1024;

/** The topic that people subscribe to. */
export function notifications(onPublish: (published: Published) => void): Operations {
  return {
    Publish: {
      latencyMs: 25,
      writes: true,
      key: (input: PublishCommandInput) => input.Subject,
      run: ({ Subject = '', Message = '', MessageAttributes = {} }: PublishCommandInput) => {
        if (Subject.length > 100 || /[^\x20-\x7e]/.test(Subject))
          throw serviceError('InvalidParameterException', 'Invalid parameter: Subject', 400);
        if (Buffer.byteLength(Message) > MAX_MESSAGE_BYTES)
          throw serviceError('InvalidParameterException', 'Invalid parameter: Message too long', 400);
        onPublish({
          id: MessageAttributes.notice?.StringValue,
          runId: MessageAttributes.run?.StringValue,
          subject: Subject,
          message: Message,
        });
        return { MessageId: 'published' };
      },
    },
  };
}

/** The default event bus: no rule of ours matches our own events. */
export const eventBus = (): Operations => ({
  PutEvents: {
    latencyMs: 15,
    writes: true,
    run: ({ Entries = [] }: PutEventsCommandInput) => {
      if (Entries.length > 10) throw serviceError('ValidationException', 'more than 10 entries', 400);
      return { FailedEntryCount: 0, Entries: Entries.map(() => ({ EventId: 'event' })) };
    },
  },
});

/** Lambda's own API, for functions that invoke others. */
export const lambdaService = (
  invoke: (functionName: string, payload: string) => Promise<{ payload: string; isError: boolean }>,
): Operations => ({
  Invoke: {
    latencyMs: 20,
    run: async ({ FunctionName = '', Payload }: InvokeCommandInput) => {
      const { payload, isError } = await invoke(FunctionName, Buffer.from((Payload ?? '') as Uint8Array).toString());
      return { Payload: Buffer.from(payload), ...(isError && { FunctionError: 'Unhandled' }), StatusCode: 200 };
    },
  },
});
