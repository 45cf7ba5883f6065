import type { Command } from 'commander';
import { REGION_FORM } from '../core/catalog/regions';
import { orList } from '../core/config/issue';
import { UsageError } from './exit';
import type { Terminal } from './terminal';

/** Registers the verbs of a folder; the code of each is loaded when it is called, so that `--help` stays fast. */
export interface CommandLine {
  root: Command;
  /** Adds a verb with the options that all verbs have. */
  verb(name: string, description: string, ...examples: string[]): Command;
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

/**
 * Parses the value of `--set`. A variable of a shell that is not set must not remove a limit.
 * @throws UsageError
 */
export function setGiven(value: string, previous?: string[]): string[] {
  if (/^[^=]+=\s*$/.test(value))
    throw new UsageError(`--set ${value}: must have a value, got nothing; write null to remove the option`);
  return collect(value, previous);
}

export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

/** Every verb with its name as it is typed, such as `tools schema`; a group of verbs goes before those in it. */
export const namedVerbs = (root: Command, before = ''): { name: string; command: Command }[] =>
  root.commands.flatMap((command) => {
    const name = before + command.name();
    return [{ name, command }, ...namedVerbs(command, `${name} `)];
  });

/** Verbs of earlier versions that are now options of others, or belong to `tools`: what is typed instead. */
const EARLIER: Readonly<Record<string, string>> = {
  top: 'list --active',
  metrics: 'status RUN --chart',
  events: 'status RUN --events, or slipway list --events',
  lineage: 'status RUN --lineage',
  note: 'status RUN --note TEXT',
  release: 'stop RUN --release-pool',
  diff: 'report RUN RUN --diff',
  costs: 'team ENVIRONMENT --costs',
  matrix: 'preflight FILE --regions',
  lock: 'preflight FILE --lock',
  schema: 'tools schema',
  completion: 'tools completion',
  mcp: 'tools mcp',
};

/** The message for a verb of an earlier version; undefined for other verbs. */
export const earlierVerb = (verb = ''): string | undefined =>
  Object.hasOwn(EARLIER, verb)
    ? `${verb}: must be a verb of slipway, got one of an earlier version; use slipway ${EARLIER[verb]}`
    : undefined;

/**
 * The option that selects what a verb does; undefined when none is given.
 * @param modes the other options that each of them takes; `''` stands for the verb without any of them
 * @throws UsageError for two of them, and for an option that the selected one does not take
 */
export function modeOf<Mode extends string>(
  options: object,
  modes: Readonly<Record<Mode | '', readonly string[]>>,
): Mode | undefined {
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const [mode = '', second] = Object.keys(modes).filter((name) => given.includes(name));
  if (second !== undefined) throw unsuited(second, mode);
  const taken: readonly string[] = modes[mode as Mode | ''];
  const others = Object.values<readonly string[]>(modes).flat();
  const wrong = given.find((name) => others.includes(name) && !taken.includes(name));
  if (wrong === undefined) return mode === '' ? undefined : (mode as Mode);
  if (mode !== '') throw unsuited(wrong, mode);
  const takers = Object.entries<readonly string[]>(modes).flatMap(([name, its]) => (its.includes(wrong) ? [name] : []));
  throw new UsageError(
    `${flag(wrong)}: must be used with ${orList(takers.map(flag))}, got ${flag(wrong)} alone; add ${flag(takers[0] ?? '')}`,
  );
}

const unsuited = (option: string, mode: string): UsageError =>
  new UsageError(`${flag(option)}: must not be used with ${flag(mode)}, got both; leave one of them out`);

/** An option as it is typed. */
export const flag = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
