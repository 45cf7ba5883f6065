import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type ControlAnswer, type ControlPayload, READ_ACTIONS } from '../../core/contracts/control';

/** The answer of the control function, or the payload of a function error. */
export type Invoked = { answer: ControlAnswer } | { functionError: string };

/** Invokes a team's control alias. @throws the SDK's error when the invocation itself fails */
export async function invokeControl(client: LambdaClient, aliasArn: string, payload: ControlPayload): Promise<Invoked> {
  const call = new InvokeCommand({ FunctionName: aliasArn, Payload: Buffer.from(JSON.stringify(payload)) });
  const { Payload, FunctionError } = await client.send(call);
  const text = Buffer.from(Payload ?? []).toString('utf8');
  return FunctionError ? { functionError: text } : { answer: JSON.parse(text) as ControlAnswer };
}

/** Whether the alias for auditors may handle the request of a caller that cannot invoke the launcher's alias: true when it only reads. */
export const isAuditable = (payload: ControlPayload): boolean => READ_ACTIONS.includes(payload.action);
