import type { Refusal } from '../../contracts/control';
import { formatPath, type Issue, issue } from '../../spec/issue';
import { refusal } from './own-run';

/** Why a call that did not come through the alias of a team is refused. @param key of the descriptor that names the right one */
export const aliasRefusal = (got: string, key: 'controlAliasArn' | 'auditAliasArn'): Refusal =>
  refusal(
    issue('control/alias', 'error', '', {
      must: 'must be invoked through the alias of a team (team-<name>)',
      got,
      fix: `use ${key} of the descriptor`,
    }),
  );

/** One mistake in a payload, as zod found it. */
export function payloadIssue(found: { path: PropertyKey[]; message: string; input?: unknown }): Issue {
  const text = { must: found.message, fix: 'use a command line of the same version as the environment' };
  return issue('control/payload', 'error', formatPath(found.path), text);
}
