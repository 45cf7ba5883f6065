import path from 'node:path';
import type { InspectedFile, Switch } from '../../core/config/code-source';

type PythonFacts = Pick<InspectedFile, 'switches' | 'savesTo' | 'loads'>;

/** A call: its name without what is before the last dot, and its values as tokens with a space between two. */
interface Call {
  name: string;
  words: string[];
  named: Record<string, string>;
}

/**
 * Strings, comments, continued lines, words with their dots, and other characters. A string needs no end, so that none is read twice: the
 * parser @lezer/python takes a time that grows with the square of the length where a call is not closed.
 */
const TOKEN =
  /[rbfu]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?)|#.*|\\\r?\n|[\w.]+|[=!<>:]=|\S|\n/gi;
/** What is kept of the text of a bracket in that of the one around it. */
const LONGEST = 1000;

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

/** The text of a literal; undefined for other values, such as f-strings. */
const literal = (source = ''): string | undefined => /^[rbu]{0,2}("""|'''|"|')([^"']*)\1$/i.exec(source)?.[2];

/** What the parser of a script makes of its options, and the texts of its calls; the options also of the files that it imports. */
export function pythonFacts(entry: string, read: (name: string) => string | undefined): PythonFacts {
  const visited = new Map<string, ReturnType<typeof readScript>>();
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
  const loads = calls.flatMap(({ name, words }) => (name === 'from_pretrained' ? (literal(words[0]) ?? []) : []));
  return {
    ...(Object.keys(switches).length > 0 && { switches }),
    ...(savesTo && { savesTo }),
    ...(loads.length > 0 && { loads }),
  };
}

/** The statements of a script, and its calls. */
function readScript(text: string): { statements: string[]; calls: Call[] } {
  const root = newBracket('', '');
  const open = [root];
  const statements: string[] = [];
  const calls: Call[] = [];
  let before = '';
  for (const [token] of `${text}\n`.matchAll(TOKEN)) {
    const top = open.at(-1) ?? root;
    if (token === '\n' && top === root) {
      statements.push(root.text);
      root.text = '';
    }
    if (/^[#\\\n]/.test(token)) continue;
    if (/^[([{]$/.test(token)) open.push(newBracket(token, /^[\w.]+$/.test(before) ? before : ''));
    else if (/^[)\]}]$/.test(token) && top !== root) {
      open.pop();
      endValue(top);
      if (top.opener === '(') calls.push(top);
      addTo(open.at(-1) ?? root, `${top.opener}${top.text.slice(0, LONGEST)} ${token}`);
    } else addTo(top, token);
    before = token;
  }
  return { statements, calls };
}

/** A bracket that is open, with all of its text, and the value that is being read. */
interface Bracket extends Call {
  opener: string;
  text: string;
  key: string;
  value: string;
}

function newBracket(opener: string, before: string): Bracket {
  const name = before.split('.').at(-1) ?? '';
  return { opener, name, words: [], named: {}, text: '', key: '', value: '' };
}

function addTo(bracket: Bracket, token: string): void {
  bracket.text += ` ${token}`;
  const isKey = token === '=' && bracket.key === '' && bracket.value.length < LONGEST && /^ \w+$/.test(bracket.value);
  if (token === ',') endValue(bracket);
  else if (isKey) [bracket.key, bracket.value] = [bracket.value.trim(), ''];
  else bracket.value += ` ${token}`;
}

function endValue(bracket: Bracket): void {
  const { key, value } = bracket;
  if (key) bracket.named[key] = value.trim();
  else if (value) bracket.words.push(value.trim());
  Object.assign(bracket, { key: '', value: '' });
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
