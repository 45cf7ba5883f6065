import { plainLine } from '../../core/config/formats/plain-text';
import { formatPath, type Issue, issue } from '../../core/config/issue';
import type { Refusal } from '../../core/contracts/control';
import { refusal } from './own-run';

/**
 * Refusal of a call that did not come through the alias of a team.
 * @param key of the descriptor that holds the right alias
 */
export const aliasRefusal = (got: string, key: 'controlAliasArn' | 'auditAliasArn'): Refusal =>
  refusal(
    issue('control/alias', 'error', '', {
      must: 'must be invoked through the alias of a team (team-<name>)',
      got,
      fix: `use ${key} of the descriptor`,
    }),
  );

/** Characters of a value in a message. */
const MAX_SHOWN = 100;

/** One error in a payload, from a zod issue, with the value that was given (parse with `reportInput: true`). */
export function payloadIssue({
  path,
  message,
  input,
}: {
  path: PropertyKey[];
  message: string;
  input?: unknown;
}): Issue {
  // For an unknown action zod reports the whole payload as the input.
  const got = typeof input === 'object' && input !== null ? Reflect.get(input, path.at(-1) ?? '') : input;
  const fix = 'correct it, or use a command line of the version of the environment';
  const text = {
    must: message,
    ...(['string', 'number', 'boolean'].includes(typeof got) && { got: plainLine(String(got), MAX_SHOWN) }),
    fix,
  };
  return issue('control/payload', 'error', formatPath(path), text);
}
