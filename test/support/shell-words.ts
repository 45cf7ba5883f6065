import type { Command } from 'commander';
import { CLI } from './run-cli';

/** The words of the calls of slipway in a command. */
export function callsOf(command: string): string[][] {
  const calls = command.replace(/^eval "\$\((.*)\)"$/, '$1').split(/&&|\||;/);
  return calls.flatMap((call) => {
    const [, words] = /^(?:npx )?slipway (.*)$/.exec(call.replace(/>.*$/, '').trim()) ?? [];
    return words === undefined
      ? []
      : [(words.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^['"]|['"]$/g, ''))];
  });
}

/** What is wrong with the words of a call: a verb or an option that there is not. */
export function misspelt([name = '', ...words]: string[]): string[] {
  const verb: Command | undefined = CLI.commands.find((command) => command.name() === name);
  if (name.startsWith('-')) return [];
  if (!verb) return [`no verb ${name}`];
  const known = verb.options.flatMap(({ long, short }) => [long, short]);
  const given = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0] ?? '');
  return given
    .filter((option) => option !== '--help' && !known.includes(option))
    .map((option) => `${name}: no option ${option}`);
}
