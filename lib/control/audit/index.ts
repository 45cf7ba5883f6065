import type { Context } from 'aws-lambda';
import { type ReadDeps, readDeps } from '../control/deps';
import { Deadline } from '../shared/deadline';
import { onQuestion } from './audit';

const deadline = new Deadline();
let deps: ReadDeps | undefined;

/** Entry point of the audit function. */
export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= readDeps(process.env, deadline);
  return onQuestion(deps, event, context.invokedFunctionArn);
};
