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

/** One mistake in a payload, as zod found it, with what was given there (parse with `reportInput: true`). */
export function payloadIssue({
  path,
  message,
  input,
}: {
  path: PropertyKey[];
  message: string;
  input?: unknown;
}): Issue {
  // Of an unknown action zod reports the whole payload.
  const got = typeof input === 'object' && input !== null ? Reflect.get(input, path.at(-1) ?? '') : input;
  const fix = 'correct it, or use a command line of the version of the environment';
  const text = { must: message, ...(['string', 'number', 'boolean'].includes(typeof got) && { got }), fix };
  return issue('control/payload', 'error', formatPath(path), text);
}
