import type { InspectedFile, ScriptOption } from '../../core/config/code-source';
import { type Call, LONGEST, literal, type Script } from './python-calls';

/** A parser of argparse, with the variable that holds it; and a group of its options. */
const PARSER = /^ (\w+) = (argparse\.)?ArgumentParser \(/;
const GROUP = /^ (\w+) = \w+\.add_(?:argument|mutually_exclusive)_group \(/;
/** Imports of argparse itself: other libraries have parsers of the same name. */
const IMPORT = /^ import (.* , )?argparse( ,|$)/;
const IMPORT_PARSER = /^ from argparse import\b.*\bArgumentParser\b/;
/** Calls with which a parser takes options, and reads all of them. */
const TAKES = /^(add_argument|add_argument_group|add_mutually_exclusive_group|parse_args|parse_known_args)$/;
/** What else is done with a parser that neither adds options nor changes how they are read. */
const HARMLESS_CALL = /^(set_defaults|get_default|error|exit|(print|format)_(help|usage))$/;
const HARMLESS = new Set(['prog', 'description', 'usage', 'epilog', 'add_help', 'formatter_class']);
/** A script that reads or changes the words itself. */
const READS_WORDS = /\bsys\.argv\b|^ from sys import\b.*\bargv\b/;
const HYDRA = /^ @ hydra\.main\b/;
const LITERALS = /^[[(] (.*?) ?,? [\])]$/;

/**
 * Every option of a script that reads them with one parser of argparse, or with Hydra; nothing where there may be others: where something
 * else is done with the parser than to add options whose names are written there, and to read all of them in the script itself.
 */
export function optionsOf(scripts: readonly Script[]): Pick<InspectedFile, 'options' | 'ignoresOthers'> {
  if (scripts[0]?.statements.some((one) => HYDRA.test(one))) return { options: HYDRA_OPTIONS };
  const statements = scripts.flatMap((one) => one.statements);
  const calls = scripts.flatMap((one) => one.calls);
  const made = calls.filter(({ name }) => name === 'ArgumentParser');
  const uses = calls.filter(({ name }) => TAKES.test(name));
  const reads = uses.filter(({ name }) => name.startsWith('parse_'));
  const holders = new Set([
    ...uses.map(({ of }) => of),
    ...statements.flatMap((one) => (PARSER.exec(one) ?? GROUP.exec(one))?.[1] ?? []),
  ]);
  const isOneParser = made.length === 1 && made.every(isUsual) && scripts.some(makesParser);
  const isReadWhole = reads.length > 0 && reads.every((one) => scripts[0]?.calls.includes(one) && hasNoArguments(one));
  const isOtherwiseUsed =
    holders.has('') || statements.some((one) => READS_WORDS.test(one) || isOtherUse(one, holders));
  if (!isOneParser || !isReadWhole || isOtherwiseUsed) return {};
  const added = uses.filter(({ name }) => name === 'add_argument').map(optionOf);
  const ignoresOthers = reads.some(({ name }) => name === 'parse_known_args');
  // A word that is ignored behind the name of no option may also be taken for a positional argument.
  const isUnclear = added.some((one) => !one || (ignoresOthers && one.names.length === 0));
  const options = [HELP, ...added.flatMap((one) => one ?? [])];
  return isUnclear ? {} : { options, ...(ignoresOthers && { ignoresOthers }) };
}

/** Whether a parser is made without what changes how words are read. */
const isUsual = ({ words, named }: Call): boolean =>
  words.length === 0 && Object.keys(named).every((key) => HARMLESS.has(key));

const hasNoArguments = ({ words, named }: Call): boolean => words.length === 0 && Object.keys(named).length === 0;

/** Whether a script makes a parser of argparse itself. */
const makesParser = ({ statements }: Script): boolean =>
  statements.some((one) => {
    const found = PARSER.exec(one);
    return found !== null && statements.some((other) => (found[2] ? IMPORT : IMPORT_PARSER).test(other));
  });

/** Whether a statement does anything with the parser or a group but to assign, return or import it, and to call it as we know it. */
function isOtherUse(statement: string, holders: ReadonlySet<string>): boolean {
  const tokens = statement.split(' ').slice(1);
  if (/^(from|import)$/.test(tokens[0] ?? '')) return false;
  return tokens.some((token, at) => {
    const [, of = '', name = ''] = /^(?:(.*)\.)?(.*)$/.exec(token) ?? [];
    if (holders.has(token))
      return !(at === 0 && tokens[1] === '=') && !(at === 1 && tokens[0] === 'return' && tokens.length === 2);
    return holders.has(of) && !((TAKES.test(name) || HARMLESS_CALL.test(name)) && tokens[at + 1] === '(');
  });
}

/** https://hydra.cc/docs/advanced/hydra-command-line-flags/, 2026-11-30. Everything else is a word such as `trainer=gpu`. */
const HYDRA_OPTIONS: ScriptOption[] = [
  ...['help', 'hydra-help', 'version', 'cfg', 'resolve', 'package', 'run', 'multirun', 'shell-completion'],
  ...['config-path', 'config-name', 'config-dir', 'experimental-rerun', 'info'],
].map((name) => ({ names: [`--${name}`], takes: 'any', isRequired: false }));

const HELP: ScriptOption = { names: ['-h', '--help'], takes: 'none', isRequired: false };

/** An option or a positional argument; nothing where its names are made when the script runs. */
function optionOf({ words, named }: Call): ScriptOption | undefined {
  const names = words.map(literal);
  if (names.length === 0 || names.includes(undefined)) return undefined;
  const action = named.action === undefined ? 'store' : (literal(named.action) ?? named.action.replace(/^.*\./, ''));
  const isNegated = action === 'BooleanOptionalAction';
  const takesOne = /^(store|append)$/.test(action) && !named.nargs;
  const takesNone = isNegated || /^(store_(true|false|const)|append_const|count|help|version)$/.test(action);
  const type = /^(int|float)$/.exec(named.type ?? '')?.[1] as ScriptOption['type'];
  const isText = !named.type || named.type === 'str';
  const { choices: among = '' } = named;
  // A longer text was cut.
  const listed = among.length < LONGEST ? LITERALS.exec(among)?.[1]?.split(' , ') : undefined;
  const values = listed?.flatMap((one) => (isText ? literal(one) : /^[\d.]+$/.exec(one)?.[0]) ?? []);
  const choices = (isText || type) && values?.length === listed?.length ? values : undefined;
  const isPositional = !names[0]?.startsWith('-');
  const isOptional = /^["'][?*]["']$|\b(REMAINDER|OPTIONAL|ZERO_OR_MORE)$/.test(named.nargs ?? '');
  const written = isPositional ? [] : names.flatMap((name) => name ?? []);
  return {
    names: isNegated ? written.flatMap((name) => [name, name.replace(/^--/, '--no-')]) : written,
    takes: takesOne ? 'one' : takesNone ? 'none' : 'any',
    ...(takesOne && type && { type }),
    ...(takesOne && choices && { choices }),
    isRequired: isPositional ? !isOptional : named.required === 'True',
  };
}
