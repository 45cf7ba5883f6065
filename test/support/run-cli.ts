import { namedVerbs } from '../../lib/cli/command-line';
import { main, program } from '../../lib/cli/main';

export interface CliResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** The verbs and options of the command line; what it prints goes nowhere. */
export const CLI = program({ out: () => undefined, err: () => undefined }, () => undefined);

/** Each of its verbs with its name as it is typed, those of a group in its place. */
export const VERBS = namedVerbs(CLI).filter(({ command }) => command.commands.length === 0);

/** Runs the command line in this process. */
export async function runCli(...args: string[]): Promise<CliResult> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await main(['node', 'slipway', ...args], { out: (t) => out.push(t), err: (t) => err.push(t) });
  return { code, stdout: out.join('\n'), stderr: err.join('\n') };
}
