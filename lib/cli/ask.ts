import { confirm, isCancel } from '@clack/prompts';
import { UsageError } from './exit';

/** Asks a question that must be answered with yes; throws a UsageError without a terminal. */
export async function ask(message: string, verb = 'launch'): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError(`${verb}: must be confirmed, got no interactive terminal; add --yes`);
  const answer = await confirm({ message, initialValue: false });
  if (isCancel(answer) || !answer)
    throw new UsageError(`${verb}: not confirmed; nothing was ${verb === 'launch' ? 'started' : 'changed'}`);
}
