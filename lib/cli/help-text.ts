import type { Command } from 'commander';
import { EXIT } from './exit';

/** The meaning of each exit code, for the pages about the command line. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT.done, 'done'],
  [EXIT.refused, 'refused by validation, plan, quota or guardrail'],
  [EXIT.usage, 'wrong usage, or a file that cannot be read or written'],
  [EXIT.service, 'a service call failed'],
  [EXIT.runFailed, 'the run ended Failed (with --wait)'],
  [EXIT.internal, 'internal error: a bug of Slipway'],
  [EXIT.interrupted, 'interrupted'],
];

/** A verb with its name as it is typed, such as `tools schema`. */
export interface NamedVerb {
  name: string;
  command: Command;
}

/** Every verb; a group of verbs goes before those in it. */
export const namedVerbs = (root: Command, before = ''): NamedVerb[] =>
  root.commands.flatMap((command) => {
    const name = before + command.name();
    return [{ name, command }, ...namedVerbs(command, `${name} `)];
  });

/** The output of `slipway VERB --help` on a terminal of 100 columns, without colours. */
export function helpOf(verb: Command): string {
  let text = '';
  const width = () => 100;
  verb.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: width, getOutHasColors: () => false });
  verb.outputHelp();
  return text.trimEnd();
}
