import type { ScriptOption } from '../../core/config/code-source';
import { type Call, literal, type Script } from './python-calls';

/** A parser of argparse, with the variable that holds it. */
const PARSER = /^ (\w+) = (?:argparse\.)?ArgumentParser \(/;
/** Calls of other parsers, of those in parts, and of those that leave unknown options alone. */
const OPEN =
  /^(parse_known(_intermixed)?_args|parse_args_into_dataclasses|add_subparsers|\w+ArgumentParser|\w*Trl?Parser)$/;
/** Settings of a parser that change neither its options nor how it reads them. */
const HARMLESS = new Set(['prog', 'description', 'usage', 'epilog', 'add_help', 'formatter_class']);
/** A script that reads or changes the words itself, or whose parser is of another library. */
const READS_WORDS = /^ (?:from|import) jsonargparse\b|\bsys\.argv\b|^ from sys import\b.*\bargv\b/;
const HYDRA = /^ @ hydra\.main\b/;
const LITERALS = /^[[(] (.*?) ?,? [\])]$/;

/** Every option of a script; nothing where it may have others. Hydra takes none, but words such as `trainer=gpu`. */
export function optionsOf(scripts: readonly Script[]): ScriptOption[] | undefined {
  const statements = scripts.flatMap((one) => one.statements);
  const calls = scripts.flatMap((one) => one.calls);
  if (statements.some((one) => HYDRA.test(one))) return [];
  const variables = statements.flatMap((one) => PARSER.exec(one)?.[1] ?? []);
  const made = calls.filter(({ name }) => name === 'ArgumentParser');
  const reads = calls.filter(({ name }) => name === 'parse_args');
  // A program that is only imported reads no words.
  const isProgram = (one: Script) =>
    one.statements.some((text) => /^ if __name__ ==/.test(text)) && one.calls.some(({ name }) => name === 'parse_args');
  const isPassedOn = ({ words, named }: Call) => [...words, ...Object.values(named)].includes(variables[0] ?? '');
  const isClosed =
    variables.length === 1 &&
    made.length === 1 &&
    made.every(({ named }) => Object.keys(named).every((key) => HARMLESS.has(key))) &&
    reads.length > 0 &&
    reads.every(({ words, named }) => words.length === 0 && Object.keys(named).length === 0) &&
    !calls.some((one) => OPEN.test(one.name) || isPassedOn(one)) &&
    !scripts.slice(1).some(isProgram) &&
    !statements.some((one) => READS_WORDS.test(one));
  const added = isClosed ? calls.filter(({ name }) => name === 'add_argument').map(optionOf) : [];
  const isKnown = isClosed && added.every((one) => one !== undefined);
  return isKnown ? [HELP, ...added.flatMap((one) => one ?? [])] : undefined;
}

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
  const listed = LITERALS.exec(named.choices ?? '')?.[1]?.split(' , ');
  const values = listed?.flatMap((one) => (isText ? literal(one) : /^[\d.]+$/.exec(one)?.[0]) ?? []);
  const choices = (isText || type) && values?.length === listed?.length ? values : undefined;
  const isPositional = !names[0]?.startsWith('-');
  const isOptional = /^["'][?*]["']$|REMAINDER/.test(named.nargs ?? '');
  const written = isPositional ? [] : names.flatMap((name) => name ?? []);
  return {
    names: isNegated ? written.flatMap((name) => [name, name.replace(/^--/, '--no-')]) : written,
    takes: takesOne ? 'one' : takesNone ? 'none' : 'any',
    ...(takesOne && type && { type }),
    ...(takesOne && choices && { choices }),
    isRequired: isPositional ? !isOptional : named.required === 'True',
  };
}
