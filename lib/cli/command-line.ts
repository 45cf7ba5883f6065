import type { Command } from 'commander';
import { REGION_FORM } from '../core/catalog/regions';
import { UsageError } from './exit';
import { quoted, type Terminal } from './terminal';

/** Registers the verbs of a folder; the code of each is loaded when it is called, so that `--help` stays fast. */
export interface CommandLine {
  root: Command;
  /** Adds a verb with the options that all verbs have. */
  verb(name: string, description: string, example: string): Command;
  /** The action of a verb: a function of its module that takes arguments, options and the terminal, and returns the exit code. */
  action<Module>(load: () => Promise<Module>, name: keyof Module): (...given: unknown[]) => Promise<void>;
  terminal: Terminal;
  /** Called once, with the exit code. */
  done(code: number): void;
  /** Runs another verb as if it had been typed, and returns its exit code. */
  run: (args: readonly string[], into: Terminal) => Promise<number>;
}

/**
 * Parses the value of `--region`, which may be a region that is newer than this version.
 * @throws UsageError
 */
export function regionGiven(value: string): string {
  if (REGION_FORM.test(value)) return value;
  throw new UsageError(`--region: must be a region such as us-west-2, got ${value || 'nothing'}; correct its name`);
}

export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

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

/** Verbs of earlier versions that are now options of others, or belong to `tools`: the words that are typed instead. */
const EARLIER: Readonly<Record<string, (args: readonly string[]) => readonly string[]>> = {
  top: (args) => ['list', ...args, '--active'],
  metrics: (args) => ['status', ...args, '--chart'],
  events: eventsNow,
  lineage: (args) => ['status', ...args, '--lineage'],
  note: noteNow,
  release: (args) => ['stop', ...args, '--release-pool'],
  diff: (args) => ['report', ...args, '--diff'],
  costs: (args) => ['team', ...args, '--costs'],
  matrix: (args) => ['preflight', ...args, ...(args.some((word) => /^--regions\b/.test(word)) ? [] : ['--regions'])],
  lock: (args) => ['preflight', ...args, '--lock'],
  schema: (args) => ['tools', 'schema', ...args],
  completion: (args) => ['tools', 'completion', ...args],
  mcp: (args) => ['tools', 'mcp', ...args],
};

/** The name of an environment, or of one of its teams; it has no hyphen, as every generated run ID has. */
const ENVIRONMENT = /^[a-z][a-z0-9]{0,11}(\/[a-z][a-z0-9]{0,11})?$/;
/** Options of these verbs that take the next word as their value. */
const VALUED = ['--environment', '--region', '--set', '--since'];

/** Events of an environment are those of all its runs. */
function eventsNow(args: readonly string[]): readonly string[] {
  const { places, options } = separate(args);
  const [target] = places;
  if (target === undefined) return ['list', ...args, '--events'];
  const isRun = options.includes('--environment') || !ENVIRONMENT.test(target);
  return isRun ? ['status', ...args, '--events'] : ['list', '--events', '--environment', target, ...options];
}

function noteNow(args: readonly string[]): readonly string[] {
  const { places, options } = separate(args);
  const [run = 'RUN', ...text] = places;
  return ['status', run, '--note', text.join(' ') || 'TEXT', ...options];
}

function separate(args: readonly string[]): { places: string[]; options: string[] } {
  const isPlace = args.map((word, i) => !word.startsWith('-') && !VALUED.includes(args[i - 1] ?? ''));
  return { places: args.filter((_, i) => isPlace[i]), options: args.filter((_, i) => !isPlace[i]) };
}

/** The message for a verb of an earlier version, with the command to type instead; undefined for other verbs. */
export function earlierVerb([verb = '', ...args]: readonly string[]): string | undefined {
  if (!Object.hasOwn(EARLIER, verb)) return undefined;
  const words = EARLIER[verb]?.(args) ?? [];
  return `${verb}: must be a verb of slipway, got one of an earlier version; use slipway ${words.map(quoted).join(' ')}`;
}
