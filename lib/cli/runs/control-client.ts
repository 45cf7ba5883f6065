import { LambdaClient } from '@aws-sdk/client-lambda';
import { invokeControl } from '../../aws/control';
import type { ControlAnswer, ControlPayload, Refusal as RefusalAnswer } from '../../contracts/control';
import type { Descriptor } from '../../spec/descriptor';
import { calling } from '../aws-errors';
import { Refusal, ServiceError, UsageError } from '../exit';

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
  const invoked = await calling(`calling the launcher of ${descriptor.name}/${descriptor.team}`, () =>
    invokeControl(lambda, alias, payload),
  );
  if ('functionError' in invoked)
    throw new ServiceError(
      `the launcher of ${descriptor.name}: failed, got ${errorMessage(invoked.functionError)}; see its log`,
    );
  const body = invoked.answer;
  if (!body.ok) throw new Refusal(body.issues, body.quota ? { quota: body.quota } : {});
  return body as Answer<T>;
}

function errorMessage(text: string): string {
  try {
    return (JSON.parse(text) as { errorMessage?: string }).errorMessage ?? text;
  } catch {
    return text;
  }
}
