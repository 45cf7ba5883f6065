import type { Command } from 'commander';
import { VERBS } from './run-cli';

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

/** The verb of a call, such as `tools schema`, and the words after it. */
export function readCall(call: string[]): { name: string; verb?: Command; words: string[] } {
  for (const [name, length] of [
    [call.slice(0, 2).join(' '), 2],
    [call[0] ?? '', 1],
  ] as const) {
    const found = VERBS.find((verb) => verb.name === name);
    if (found) return { name, verb: found.command, words: call.slice(length) };
  }
  return { name: call[0] ?? '', words: call.slice(1) };
}

/** What is wrong with the words of a call: a verb or an option that there is not. */
export function misspelt(call: string[]): string[] {
  const [name = ''] = call;
  if (name.startsWith('-')) return [];
  const { verb, words } = readCall(call);
  if (!verb) return [`no verb ${name}`];
  const known = verb.options.flatMap(({ long, short }) => [long, short]);
  const given = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split('=')[0] ?? '');
  return given
    .filter((option) => option !== '--help' && !known.includes(option))
    .map((option) => `${name}: no option ${option}`);
}
