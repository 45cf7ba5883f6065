import type { Context } from 'aws-lambda';
import { type ControlAnswer, readRequestSchema } from '../../core/contracts/control';
import { findTeamOfAlias } from '../../core/contracts/launcher';
import { type ReadDeps, readDeps } from '../control/deps';
import { aliasRefusal, payloadIssue, refusal } from '../control/own-run';
import { answerRead } from '../control/reads/logs';
import { Deadline } from '../shared/deadline';

/**
 * The function that auditors invoke, through one alias per team: status, list, events and logs, with the same answers as `control`. Its
 * role has read permissions only, so that no error in this code can change a run. The team is that of the alias.
 */
export async function onQuestion(deps: ReadDeps, payload: unknown, invokedFunctionArn: string): Promise<ControlAnswer> {
  const team = findTeamOfAlias(invokedFunctionArn);
  if (!team) return aliasRefusal(invokedFunctionArn, 'auditAliasArn');
  const parsed = readRequestSchema.safeParse(payload, { reportInput: true });
  if (!parsed.success) return refusal(...parsed.error.issues.map(payloadIssue));
  return answerRead(deps, team, parsed.data);
}

const deadline = new Deadline();
let deps: ReadDeps | undefined;

export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= readDeps(process.env, deadline);
  return onQuestion(deps, event, context.invokedFunctionArn);
};
