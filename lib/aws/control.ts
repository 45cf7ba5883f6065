import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { type ControlAnswer, type ControlPayload, READ_ACTIONS } from '../contracts/control';

/** What the control function answered, or the payload of an error inside it. */
export type Invoked = { answer: ControlAnswer } | { functionError: string };

/** Invokes a team's control alias. What keeps the call itself from happening is thrown as the SDK has it. */
export async function invokeControl(client: LambdaClient, aliasArn: string, payload: ControlPayload): Promise<Invoked> {
  const call = new InvokeCommand({ FunctionName: aliasArn, Payload: Buffer.from(JSON.stringify(payload)) });
  const { Payload, FunctionError } = await client.send(call);
  const text = Buffer.from(Payload ?? []).toString('utf8');
  return FunctionError ? { functionError: text } : { answer: JSON.parse(text) as ControlAnswer };
}

/** Whether a caller that may not invoke the launcher's alias may be answered by the alias of auditors: the request changes nothing. */
export const isAuditable = (payload: ControlPayload): boolean => READ_ACTIONS.includes(payload.action);
