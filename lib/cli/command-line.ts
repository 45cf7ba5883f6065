import type { Command } from 'commander';
import { REGION_FORM } from '../core/catalog/regions';
import { EXIT, UsageError } from './exit';
import { quoted, type Terminal } from './terminal';

/** Registers the verbs of a folder; the code of each is loaded when it is called, so that `--help` stays fast. */
export interface CommandLine {
  root: Command;
  /** Adds a verb with the options that all verbs have. */
  verb(name: string, description: string, example: string): Command;
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

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];

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
function helpOf(verb: Command): string {
  let text = '';
  const width = () => 100;
  verb.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: width, getOutHasColors: () => false });
  verb.outputHelp();
  return text.trimEnd();
}

const HEAD = `# Command line

Generated from the command definitions by \`npm run docs:cli\`. With \`--json\`, a verb prints exactly one JSON document to stdout; all other messages go to stderr.
\`--environment\` with a name (or \`name/team\`) reads the descriptor of a deployed environment from SSM; with a path that ends in \`.json\` it reads that file, so that all steps before the
request work offline. If neither this option nor the run file names an environment, verbs that need one use \`SLIPWAY_ENVIRONMENT\`. With \`--json\`, a call that fails prints
\`{ok: false, issues: [...]}\`, unless its document was already printed. The \`rule\` of an issue is the id of a rule, or \`command/usage\`, \`command/file\`, \`command/service\` or \`command/internal\`.

| exit code | meaning |
|---|---|
${EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning.replace('--wait', '`--wait`')} |`).join('\n')}

Every error has the form \`<option as written>: <what must hold>, got <value>; <what to do>\`; all errors are reported together. A stack trace is printed only with \`SLIPWAY_DEBUG=1\`; a report of an internal error should contain it.

Text of jobs, people and files is printed without escape sequences and invisible characters, and a long one is cut. JSON contains all of it, with escapes for these characters.
`;

/** docs/reference/command-line.md: every verb with its description and the help that it prints. */
export function referencePage(program: Command): string {
  const verbs = namedVerbs(program).filter(({ command }) => command.commands.length === 0);
  const rows = verbs.map(
    ({ name, command }) => `| [\`${name}\`](#${name.replace(' ', '-')}) | ${command.description()} |`,
  );
  const sections = verbs.map(({ name, command }) => `## ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`);
  return [HEAD, ['| verb | description |', '|---|---|', ...rows, ''].join('\n'), ...sections].join('\n');
}

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

/** Options with their values, and the other words. */
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
