import { isNear, isSameWord, nearest } from '../../catalog/nearest';
import type { ScriptOption } from '../../config/code-source';
import { orList } from '../../config/issue';
import { entriesOf, type Finding, type Rule, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { entryFile, someOf } from './code-folder';

/** Numbers as `int` and `float` of Python read them. */
const NUMBERS = {
  int: /^\s*[-+]?\d+(_\d+)*\s*$/,
  float: /^\s*[-+]?((\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[-+]?\d+(_\d+)*)?|inf(inity)?|nan)\s*$/i,
};

/** The options that argparse takes a name for: the one of this name, or those that begin with it. */
function optionsFor(name: string, options: readonly ScriptOption[]): readonly ScriptOption[] {
  const exact = options.filter(({ names }) => names.includes(name));
  const isLong = name.startsWith('--');
  return exact.length > 0 || !isLong ? exact : options.filter(({ names }) => names.some((one) => one.startsWith(name)));
}

/** An argument as the launcher passes it, by the name that the script gets. */
type Passed = ReturnType<typeof passedBy>[number];
type Refusal = Omit<Finding, 'path'> | undefined;

/** What argparse ends the script for, and what to write instead. */
function refusal({ key, name, value }: Passed, options: readonly ScriptOption[], ignoresOthers?: true): Refusal {
  const [option, ...others] = optionsFor(name, options);
  if (!option && ignoresOthers) return ignoredOption(key, options);
  if (!option || others.length > 0) return unknownOption(key, options);
  if (option.takes === 'any' || (option.takes === 'none' && ignoresOthers)) return undefined;
  return option.takes === 'none' ? unwantedValue(value) : wrongValue(value, option);
}

const longNames = (options: readonly ScriptOption[]): string[] =>
  options
    .flatMap(({ names }) => names.filter((one) => one.startsWith('--') && one !== '--help'))
    .map((one) => one.slice(2));

/** Nothing for what resembles no option: something else may read it. */
function ignoredOption(key: string, options: readonly ScriptOption[]): Refusal {
  const other = longNames(options).find((one) => isSameWord(one, key));
  if (other === undefined) return undefined;
  return { must: `must be written ${other}, as the script declares it: it ignores others`, fix: `write ${other}` };
}

function unknownOption(key: string, options: readonly ScriptOption[]): Refusal {
  const words = longNames(options);
  const [near = ''] = nearest(key, words, 1);
  return {
    must: 'must be an option that the script declares: it ends at any other',
    fix: isNear(key, near) ? `write ${near}, or declare it in the script` : 'remove it, or declare it in the script',
  };
}

const unwantedValue = (value: unknown): Refusal =>
  value === true
    ? undefined
    : { must: 'must be true or false: the script takes no value for it', fix: 'write true, or false to leave it out' };

function wrongValue(value: unknown, { type, choices }: ScriptOption): Refusal {
  if (value === true)
    return {
      must: 'must have a value: the script reads one behind its name',
      fix: 'write "True", or what the script expects',
    };
  const texts = [value].flat().map(String);
  if (type && !texts.every((text) => NUMBERS[type].test(text)))
    return {
      must: `must be a ${type === 'int' ? 'whole number' : 'number'}: the script declares it with type=${type}`,
      fix: 'correct it',
    };
  const isChoice = (text: string) => choices?.some((one) => (type ? Number(one) === Number(text) : one === text));
  if (choices && !texts.every(isChoice))
    return { must: `must be ${orList(choices)}, which the script lists as its choices`, fix: 'use one of them' };
  return undefined;
}

/**
 * What the launcher passes to a script: false is left out. The toolkit writes true as a text, and a name of one letter with one dash, and
 * keeps names of its own: https://github.com/aws/sagemaker-training-toolkit/blob/master/src/sagemaker_training/mapping.py, 2026-11-30.
 */
function passedBy(run: RunSpec) {
  const isToolkit = run.distribution.contract === 'toolkit';
  return entriesOf(run, isToolkit ? ['code.arguments', 'hyperparameters'] : ['code.arguments'])
    .filter(({ key, value }) => value !== false && !(isToolkit && key.startsWith('sagemaker_')))
    .map((one) => {
      const dashes = one.key.startsWith('-') ? '' : isToolkit && one.key.length === 1 ? '-' : '--';
      return { ...one, name: `${dashes}${one.key}`, ...(isToolkit && one.value === true && { value: 'True' }) };
    });
}

const RANKS = {
  spawn: {
    must: 'must train as the rank that torchrun starts, with its RANK, LOCAL_RANK and WORLD_SIZE: it spawns ranks of its own, in each of them',
    fix: 'call the function without spawn, or use distribution.launcher script on one host',
  },
  localhost: {
    must: 'must find rank 0 with the MASTER_ADDR that the launcher sets: it names its own host, so that no host finds another',
    fix: 'remove the line, or set it only where MASTER_ADDR is not in os.environ',
  },
  argument: {
    must: 'must take its GPU from the variable LOCAL_RANK: torchrun passes no argument, so that all ranks of a host use one GPU',
    fix: 'read int(os.environ["LOCAL_RANK"])',
  },
};

/** Rules for what a script makes of its arguments, and of the ranks that the launcher starts. */
export const SCRIPT_RULES: readonly Rule[] = [
  rule('code/refused-arguments', 'warning, may acknowledge', (run, { codeFolder }) => {
    const { options, ignoresOthers } = entryFile(run, codeFolder) ?? {};
    if (options === undefined) return [];
    const passed = passedBy(run);
    const refused = passed.flatMap((one) => {
      // Behind one dash names may be joined, and a value may be joined to any name.
      const found = /^-[^-]|=/.test(one.name) ? undefined : refusal(one, options, ignoresOthers);
      return found ? [{ path: one.path, ...found }] : [];
    });
    const named = new Set(passed.flatMap(({ name }) => optionsFor(name, options)));
    const absent = options.filter((option) => option.isRequired && !named.has(option)).map(({ names }) => names.at(-1));
    return [
      ...refused,
      ...when(absent.length > 0, 'code.arguments', {
        must: `must have ${orList(
          absent.map((name) => name ?? 'a word without a name'),
          'and',
        )}, which the script requires`,
        got: someOf(passed.map(({ key }) => key)) || 'none',
        fix: absent.includes(undefined) ? 'declare it as an option: arguments have names' : 'add it',
      }),
    ];
  }),
  rule('code/own-ranks', 'warning, may acknowledge', (run, { codeFolder }) => {
    const { compute, distribution } = run;
    const ownRanks = entryFile(run, codeFolder)?.ownRanks;
    const applies = distribution.launcher === 'torchrun' && (ownRanks !== 'localhost' || compute.instanceCount > 1);
    return ownRanks && applies ? [{ path: 'code.entryPoint', ...RANKS[ownRanks] }] : [];
  }),
];
