import type { Command, Option } from 'commander';
import { REGIONS } from '../../core/catalog/regions';
import type { CommandLine } from '../command-line';
import { EXIT, UsageError } from '../exit';

/** The environment and region whose runs are offered. */
export interface CompletionOptions {
  environment?: string;
  region?: string;
}

/** Names that the command line itself does not know. */
export interface Names {
  /** Environments, as `name` or `name/team`. */
  environments(): Promise<string[]>;
  runs(options: CompletionOptions): Promise<string[]>;
}

/** Loaded only when a name is completed, so that shell start-up and the completion of verbs stay fast. */
const NAMES: Names = {
  environments: async () => (await import('./account-names.js')).environmentNames('environments'),
  runs: async (options) => (await import('./account-names.js')).runIds(options),
};

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/**
 * `slipway tools completion bash|zsh|fish` prints the script that the shell loads at its start. The script calls `slipway tools completion candidates
 * -- WORDS...`, which prints the possible completions of the last word, one per line; if it prints nothing, the shell offers files.
 */
export async function completion(
  action: string,
  words: readonly string[],
  { root, terminal }: Pick<CommandLine, 'root' | 'terminal'>,
): Promise<number> {
  if (action === 'candidates') {
    for (const found of await candidates(words, root, NAMES)) terminal.out(found);
    return EXIT.done;
  }
  if (!(SHELLS as readonly string[]).includes(action))
    throw new UsageError(`tools completion: must be bash, zsh or fish, got ${action}; use one of them`);
  terminal.out(SCRIPTS[action as (typeof SHELLS)[number]]);
  return EXIT.done;
}

/**
 * Possible completions of the last of `words`, which are the words after `slipway`. If the account does not answer, it contributes no
 * names.
 */
export async function candidates(words: readonly string[], root: Command, names: Names): Promise<string[]> {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const found = await completions(root, before, current, names);
  return found.filter((candidate) => candidate.startsWith(current)).sort();
}

async function completions(
  parent: Command,
  before: readonly string[],
  current: string,
  names: Names,
): Promise<string[]> {
  if (parent.commands.length === 0) return below(parent, before, current, names);
  const verb = parent.commands.find((command) => command.name() === before[0]);
  if (verb) return completions(verb, before.slice(1), current, names);
  return before.length > 0 ? [] : parent.commands.map((command) => command.name());
}

async function below(verb: Command, before: readonly string[], current: string, names: Names): Promise<string[]> {
  const last = before.at(-1) ?? '';
  const option = verb.options.find(({ long, short }) => long === last || short === last);
  const given = { environment: givenValue(before, '--environment'), region: givenValue(before, '--region') };
  if (option && takesValue(option)) return valuesOf(option, names);
  if (current.startsWith('-')) return verb.options.flatMap(({ long }) => long ?? []);
  const position = positionals(verb, before).length;
  const argument = verb.registeredArguments[position];
  return argument ? argumentValues(verb.name(), argument.name(), given, names) : [];
}

const takesValue = (option: Option): boolean => option.required || option.optional;
const givenValue = (words: readonly string[], option: string): string | undefined =>
  words.includes(option) ? words[words.indexOf(option) + 1] : undefined;

/** The words that are neither options nor option values. */
function positionals(verb: Command, words: readonly string[]): string[] {
  return words.filter((word, i) => {
    const previous = verb.options.find(({ long, short }) => long === words[i - 1] || short === words[i - 1]);
    return !word.startsWith('-') && !(previous && takesValue(previous));
  });
}

async function valuesOf(option: Option, names: Names): Promise<string[]> {
  if (option.long === '--environment') return names.environments().catch(() => []);
  if (option.long === '--region') return Object.keys(REGIONS);
  // `<read|deploy|train|efa>`: the option's flags list the values.
  const [, choices = ''] = /[<[]([\w-]+(?:\|[\w-]+)+)[>\]]/.exec(option.flags) ?? [];
  const words = choices.split('|');
  // The shell itself completes files.
  return words.includes('file') ? [] : words.filter((word) => word !== '');
}

/** Arguments of verbs that accept a fixed set of words. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  sandbox: ['start', 'env', 'deploy', 'status', 'stop'],
  completion: SHELLS,
};

async function argumentValues(verb: string, name: string, given: CompletionOptions, names: Names): Promise<string[]> {
  if (ACTIONS[verb] && name !== 'file') return [...ACTIONS[verb]];
  if (verb === 'schema') return name.split('|');
  const kinds = name.split('|');
  const found = await Promise.all([
    kinds.includes('run') ? names.runs(given).catch(() => []) : [],
    kinds.includes('environment') ? names.environments().catch(() => []) : [],
  ]);
  return found.flat();
}

/** The completion script of each shell. Names in the account are requested each time; nothing is cached on disk. */
const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `# slipway tools completion for bash: eval "$(slipway tools completion bash)"
_slipway() {
  local IFS=$'\\n'
  COMPREPLY=($(slipway tools completion candidates -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _slipway slipway`,
  zsh: `# slipway tools completion for zsh: eval "$(slipway tools completion zsh)"
_slipway() {
  local -a found
  found=(\${(f)"$(slipway tools completion candidates -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( \${#found} )); then compadd -a found; else _files; fi
}
compdef _slipway slipway`,
  fish: `# slipway tools completion for fish: slipway tools completion fish | source
function __slipway_candidates
  set -l words (commandline -opc) (commandline -ct)
  slipway tools completion candidates -- $words[2..-1] 2>/dev/null
end
complete -c slipway -a '(__slipway_candidates)'`,
};
