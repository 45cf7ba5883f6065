import { type Drafted, filled } from './rows';

/** A parsed command line that starts training. */
interface StartCommand {
  launcher: 'torchrun' | 'script';
  /** File or module. */
  entryPoint: string;
  processesPerHost?: number;
  hosts?: number;
  /** Arguments of the program, in order. */
  arguments: readonly string[];
  /** Launcher options that have no equivalent in a run file. */
  others: readonly Option[];
  /** Variables before the program: `NCCL_DEBUG=INFO torchrun ...`. */
  variables: Record<string, string>;
}

interface Option {
  option: string;
  value: string;
}

type Program = Omit<StartCommand, 'variables'>;

/** Options of torchrun that take no value. https://docs.pytorch.org/docs/stable/elastic/run.html, 2026-11-22. */
const TORCHRUN_FLAGS = ['--standalone', '--no-python', '--run-path', '-m', '--module', '--duplicate-stdout-filters'];
/** Options that Slipway's driver sets on every host, so that they can be dropped. */
const DRIVER_SETS = [
  '--node-rank',
  '--rdzv-backend',
  '--rdzv-endpoint',
  '--rdzv-id',
  '--rdzv-conf',
  '--master-addr',
  '--master-port',
  '--standalone',
];
const TORCHRUN_CARRIED = ['--nproc-per-node', '--nnodes', '-m', '--module', ...DRIVER_SETS];
const TORCHX_CARRIED = ['-j', '--j', '--script', '-m'];

/** Parses `torchrun ...`, `python -m torch.distributed.run ...`, `python file ...`, or torchx's `dist.ddp ...`. */
export function readCommand(words: readonly string[]): StartCommand | undefined {
  const at = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word) && word !== 'exec' && word !== 'env');
  if (at < 0) return undefined;
  const program = readProgram(words.slice(at));
  const variables = words.slice(0, at).filter((word) => word.includes('='));
  return program && { ...program, variables: Object.fromEntries(variables.map((word) => word.split(/=(.*)/s))) };
}

/** The last of some commands with a known program. */
export const lastCommand = (lines: readonly string[]): StartCommand | undefined =>
  lines.map((line) => readCommand(splitWords(line))).findLast((command) => command !== undefined);

function readProgram([first = '', ...others]: readonly string[]): Program | undefined {
  const program = first.split('/').at(-1) ?? '';
  if (program === 'torchrun') return torchrun(others);
  if (/^python[\d.]*$/.test(program)) {
    const words = others.filter((word) => word !== '-u');
    const isTorchrun = words[0] === '-m' && /^torch\.distributed\.(run|launch)$/.test(words[1] ?? '');
    return isTorchrun ? torchrun(words.slice(2)) : script(words);
  }
  if (program === 'torchx') return torchx(others);
  if (program === 'bash' || program === 'sh') return script(others);
  if (/\.(py|sh)$/.test(first)) return script([first, ...others]);
  return undefined;
}

function script(words: readonly string[]): Program | undefined {
  const [entryPoint, ...rest] = words[0] === '-m' ? words.slice(1) : words;
  if (entryPoint === undefined || entryPoint.startsWith('-')) return undefined;
  return { launcher: 'script', entryPoint, arguments: rest, others: [] };
}

/** The options before the first word that is none, and the words from there. */
function readOptions(words: readonly string[], flags: readonly string[]): { options: Option[]; rest: string[] } {
  const options: Option[] = [];
  let at = 0;
  for (; words[at]?.startsWith('-'); at++) {
    const [written = '', inline] = words[at]?.split(/=(.*)/s) ?? [];
    const option = written.replaceAll('_', '-');
    options.push({ option, value: inline ?? (flags.includes(option) ? '' : (words[++at] ?? '')) });
  }
  return { options, rest: words.slice(at) };
}

const optionValue = (options: readonly Option[], ...names: string[]): string | undefined =>
  options.find(({ option }) => names.includes(option))?.value;

/** A number of hosts or processes; the upper end of a range such as `1:4`. */
const count = (text = ''): number | undefined => {
  const number = Number(text.split(':').at(-1));
  return Number.isInteger(number) && number > 0 ? number : undefined;
};

function torchrun(words: readonly string[]): Program | undefined {
  const { options, rest } = readOptions(words, TORCHRUN_FLAGS);
  const [entryPoint, ...after] = rest;
  if (entryPoint === undefined) return undefined;
  return {
    launcher: 'torchrun',
    entryPoint,
    processesPerHost: count(optionValue(options, '--nproc-per-node')),
    hosts: count(optionValue(options, '--nnodes')),
    arguments: after,
    others: options.filter(({ option }) => !TORCHRUN_CARRIED.includes(option)),
  };
}

/** `torchx run [--scheduler S] dist.ddp -j 2x8 --script train.py -- arguments`: the component that starts torchrun. */
function torchx(words: readonly string[]): Program | undefined {
  const at = words.indexOf('dist.ddp');
  if (at < 0) return undefined;
  const end = words.indexOf('--', at);
  const { options } = readOptions(words.slice(at + 1, end < 0 ? undefined : end), []);
  const entryPoint = optionValue(options, '--script') ?? optionValue(options, '-m');
  if (entryPoint === undefined) return undefined;
  const [hosts, processes] = (optionValue(options, '-j', '--j') ?? '1x1').split('x');
  return {
    launcher: 'torchrun',
    entryPoint,
    processesPerHost: count(processes),
    hosts: count(hosts),
    arguments: end < 0 ? [] : words.slice(end + 1),
    others: options.filter(({ option }) => !TORCHX_CARRIED.includes(option)),
  };
}

/** Sections for a start command; `field` is the path for remarks. */
export function ofCommand(command: StartCommand, source: string, field: string): Drafted {
  const { values, others } = readArguments(command.arguments);
  const remarks = [
    ...command.others.map(({ option, value }) => ({
      field: `${field} ${option}`,
      value,
      why: `an option of the launcher that Slipway's driver sets automatically or does not support`,
    })),
    ...others.map((value) => ({
      field,
      value,
      why: 'code.arguments only supports --key value; change the program to read it from such an argument',
    })),
  ];
  const entryPoint = command.entryPoint.replace(/^\/opt\/ml\/(code|input\/data\/code)\//, '').replace(/^\.\//, '');
  const { launcher, processesPerHost, variables } = command;
  const draft = {
    code: filled({ source, entryPoint, arguments: values }),
    distribution: filled({ library: 'custom', launcher, processesPerHost }),
    environmentVariables: variables,
  };
  return { draft, remarks };
}

/** Splits a shell line into words, with quotes and backslashes, but without variables or globs. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  const joined = line.replace(/\\\r?\n/g, ' ');
  const part = /\s+|"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)|([^\s"'\\]+)/gs;
  let word: string | undefined;
  for (const [text, double, single, escaped, plain] of joined.matchAll(part)) {
    if (/^\s/.test(text) && plain === undefined && double === undefined) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + (double?.replace(/\\(["\\$`])/g, '$1') ?? single ?? escaped ?? plain ?? '');
  }
  if (word !== undefined) words.push(word);
  return words;
}

type ArgumentValue = string | number | boolean | (string | number)[];

/**
 * Arguments in the form of `code.arguments`: `--key value`, `--key=value`, a bare `--flag`, a repeated key as a list. Arguments without a
 * key, or that would be written differently, are returned in `others`.
 */
export function readArguments(words: readonly string[]): { values: Record<string, ArgumentValue>; others: string[] } {
  const values: Record<string, ArgumentValue> = {};
  const others: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (!/^--?[A-Za-z]/.test(word)) {
      others.push(word);
      continue;
    }
    const [flag = '', inline] = word.split(/=(.*)/s);
    const next = words[i + 1];
    const isBare = inline === undefined && (next === undefined || /^--?[A-Za-z]/.test(next));
    const value: ArgumentValue = isBare ? true : plainValue(inline ?? (words[++i] as string));
    const key = flag.startsWith('--') ? flag.slice(2) : flag;
    const before = values[key];
    if (before === undefined) values[key] = value;
    else if (typeof value !== 'boolean' && typeof before !== 'boolean') values[key] = [before, value].flat();
    else others.push(word);
  }
  return { values, others };
}

/** Converts to a number if that is written back the same way; otherwise keeps the text, such as `1e-4`. */
const plainValue = (text: string): string | number =>
  text.trim() !== '' && String(Number(text)) === text && Number.isFinite(Number(text)) ? Number(text) : text;
