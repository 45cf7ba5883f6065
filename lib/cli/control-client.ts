import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { ControlAnswer, ControlPayload, Refusal as RefusalAnswer } from '../contracts/control';
import type { Descriptor } from '../spec/descriptor';
import { calling } from './aws-errors';
import { Refusal, ServiceError, UsageError } from './exit';

type Answer<T> = Exclude<T, RefusalAnswer>;

/** Calls the team's control alias. A refusal is thrown with its issues; so is an error inside the function. */
export async function callControl<T extends ControlAnswer>(
  descriptor: Descriptor,
  payload: ControlPayload,
): Promise<Answer<T>> {
  const alias = descriptor.controlAliasArn;
  if (!alias)
    throw new UsageError(
      `--environment: must have a launcher, got environment ${descriptor.name} without controlAliasArn; deploy it with one`,
    );
  const lambda = new LambdaClient({ region: descriptor.region });
  const answer = await calling(`calling the launcher of ${descriptor.name}/${descriptor.team}`, () =>
    lambda.send(new InvokeCommand({ FunctionName: alias, Payload: Buffer.from(JSON.stringify(payload)) })),
  );
  const text = Buffer.from(answer.Payload ?? []).toString('utf8');
  if (answer.FunctionError)
    throw new ServiceError(`the launcher of ${descriptor.name}: failed, got ${functionError(text)}; see its log`);
  const body = JSON.parse(text) as ControlAnswer;
  if (!body.ok) throw new Refusal(body.issues, body.quota ? { quota: body.quota } : {});
  return body as Answer<T>;
}

function functionError(text: string): string {
  try {
    return (JSON.parse(text) as { errorMessage?: string }).errorMessage ?? text;
  } catch {
    return text;
  }
}
