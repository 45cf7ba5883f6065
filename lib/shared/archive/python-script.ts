import path from 'node:path';
import type { InspectedFile, Switch } from '../../core/config/code-source';
import { type Call, literal, readScript, type Script } from './python-calls';
import { optionsOf } from './python-options';

type PythonFacts = Pick<InspectedFile, 'switches' | 'options' | 'ignoresOthers' | 'ownRanks' | 'savesTo' | 'loads'>;

/** A call that makes the arguments of a trainer of transformers or TRL. */
const TRAINER_ARGUMENTS = /(Arguments|Config)$/;
/** Calls that read dataclasses from the command line: of transformers, TRL and simple_parsing. */
const READS_FIELDS = /^(HfArgumentParser|TrlParser|add_arguments)$/;
/** A library whose parser reads the text False for type=bool. */
const READS_BOOL = /^ (?:from|import) jsonargparse\b/;

/** A variable of the environment. */
const VARIABLE = /^os\.(?:getenv|environ(?:\.get)?) [([] ["'](\w+)/;
/** A field of a dataclass that is true by default. */
const TRUE_FIELD = /^ (\w+) : (?:Optional \[ )?bool\b[^=]*= (?:True$|field \( .*\bdefault = True\b)/;

/** What the parser of a script makes of its options, and the texts of its calls; the options also of the files that it imports. */
export function pythonFacts(entry: string, read: (name: string) => string | undefined): PythonFacts {
  const visited = new Map<string, Script>();
  const visit = (name: string) => {
    const text = visited.has(name) ? undefined : read(name);
    if (text === undefined) return;
    const script = readScript(text);
    visited.set(name, script);
    for (const statement of script.statements) for (const file of filesOf(statement, name, entry)) visit(file);
  };
  visit(entry);
  const scripts = [...visited.values()];
  const calls = scripts.flatMap(({ calls, statements }) =>
    statements.some((one) => READS_BOOL.test(one)) ? calls.filter(({ named }) => named.type !== 'bool') : calls,
  );
  const statements = calls.some(({ name }) => READS_FIELDS.test(name)) ? scripts.flatMap((one) => one.statements) : [];
  const fields = statements.flatMap((statement) => TRUE_FIELD.exec(statement)?.[1] ?? []);
  const switches: Record<string, Switch> = Object.fromEntries([
    ...fields.map((field) => [field, { off: 'text', isOn: true }]),
    ...calls.flatMap(switchesOf).reverse(),
  ]);
  const savesTo = (scripts[0]?.calls ?? []).flatMap(placeOf)[0];
  const options = optionsOf(scripts);
  const ownRanks = ranksOf(scripts, options.options);
  const loads = calls.flatMap(({ name, words }) => (name === 'from_pretrained' ? (literal(words[0]) ?? []) : []));
  return {
    ...(Object.keys(switches).length > 0 && { switches }),
    ...options,
    ...(ownRanks && { ownRanks }),
    ...(savesTo && { savesTo }),
    ...(loads.length > 0 && { loads }),
  };
}

/** Options of argparse, or of ConfigArgParse with its shorter names; variables in bool(). */
function switchesOf({ name, words, named }: Call): [string, Switch][] {
  const [, variable] = (name === 'bool' && VARIABLE.exec(words[0] ?? '')) || [];
  if (variable) return [[`$${variable}`, { off: 'empty', isOn: false }]];
  const options = /^add(_arg(ument)?)?$/.test(name) ? words.map(literal) : [];
  if (!options[0]?.startsWith('-')) return [];
  const isOn = named.default === 'True' && literal(named.action) !== 'store_false';
  const readsText = named.type ? named.type !== 'bool' : !isOn;
  const off = named.action?.endsWith('BooleanOptionalAction') ? 'negation' : readsText ? 'text' : 'never';
  return options.map((option = '') => [option.replace(/^-+/, ''), { off, isOn }]);
}

/** This host by a name that each host has. */
const LOCAL_ADDRESS = /^["'](tcp:\/\/)?(localhost|127\.0\.0\.1)\b/;
const OWN_ADDRESS = /^ os\.environ \[ ["']MASTER_ADDR["'] \] = ["'](localhost|127\.0\.0\.1)["']/;
/** A script that reads what torchrun sets may make ranks only where there are none; to set such a variable is not to read it. */
const LAUNCHED =
  /["'](MASTER_ADDR|RANK|LOCAL_RANK|WORLD_SIZE|TORCHELASTIC_RUN_ID)["']|\b(is_torchelastic_launched|get_node_local_rank)\b/;
const SETS = /^ os\.environ \[ ["']\w+["'] \] = /;
const CONDITION = /^ (if (?!__name__)|elif|else|try|except)/;
/** A script that takes its GPU from an argument, which torchrun does not pass. */
const OWN_GPU = /\b(?:set_device \( |device \( ["']cuda["'] , )(\w+)\.local_rank \)/;

/** How the program makes its ranks without those that torchrun starts, whatever its arguments are. */
function ranksOf([program]: readonly Script[], options: InspectedFile['options']): InspectedFile['ownRanks'] {
  const { statements, calls } = program ?? { statements: [], calls: [] };
  if (statements.some((one) => LAUNCHED.test(one) && !SETS.test(one))) return undefined;
  const isArgument = options?.some(({ names }) => names.some((name) => /^--local[-_]rank$/.test(name)));
  const holder = statements.flatMap((one) => /^ (\w+) = \w+\.parse_args \( \)$/.exec(one)?.[1] ?? [])[0];
  if (isArgument && statements.some((one) => OWN_GPU.exec(one)?.[1] === holder)) return 'argument';
  // What stands under a condition may be for one host.
  const always = statements.filter((_, at) => !CONDITION.test(statements[at - 1] ?? ''));
  const joins = calls.filter(({ name }) => name === 'init_process_group');
  if (joins.length > 0 && always.some((one) => /\bspawn \(.*\bnprocs = /.test(one))) return 'spawn';
  const isLocal = joins.some(({ named }) => LOCAL_ADDRESS.test(named.init_method ?? ''));
  return isLocal || always.some((one) => OWN_ADDRESS.test(one)) ? 'localhost' : undefined;
}

/** The folder for the checkpoints of a trainer that is named as a text. */
function placeOf({ name, words, named }: Call): string[] {
  const isTrainers = TRAINER_ARGUMENTS.test(name) && literal(named.save_strategy) !== 'no';
  const first = name.endsWith('TrainingArguments') ? words[0] : undefined;
  return isTrainers ? [literal(named.output_dir ?? first) ?? []].flat() : [];
}

/** Files that an import statement may mean: Python searches the root of the code, and the folder of the entry point. */
function filesOf(statement: string, file: string, entry: string): string[] {
  const [, up = '', from = '', names = ''] = /^(?: from (\.*)([\w.]*))? import\b(.*)/.exec(statement) ?? [];
  const roots = up
    ? [path.posix.join(path.posix.dirname(file), ...Array(up.length - 1).fill('..'))]
    : ['', path.posix.dirname(entry)];
  const imported = names.match(/[\w.]+/g) ?? [];
  const modules = from || up ? [from, ...imported.map((one) => `${from}.${one}`)] : imported;
  return roots.flatMap((root) =>
    modules.flatMap((module) => {
      const at = path.posix.join(root, module.replaceAll('.', '/'));
      return [`${at}.py`, `${at}/__init__.py`];
    }),
  );
}
