/** A parsed command line that starts training. */
export interface StartCommand {
  launcher: 'torchrun' | 'script';
  /** File, or module if `isModule`. */
  entryPoint: string;
  isModule: boolean;
  processesPerHost?: number;
  hosts?: number;
  /** Arguments of the program, in order. */
  arguments: string[];
  /** Launcher options that have no equivalent in a run file. */
  others: { option: string; value: string }[];
  /** Variables before the program: `NCCL_DEBUG=INFO torchrun ...`. */
  variables: Record<string, string>;
}

type Program = Omit<StartCommand, 'variables'>;

/** Options of torchrun that take no value. https://docs.pytorch.org/docs/stable/elastic/run.html, 2026-11-22. */
const TORCHRUN_FLAGS = new Set([
  '--standalone',
  '--no-python',
  '--run-path',
  '-m',
  '--module',
  '--duplicate-stdout-filters',
]);
/** Options that Slipway's driver sets on every host, so that they can be dropped. */
const DRIVER_SETS = new Set([
  '--node-rank',
  '--rdzv-backend',
  '--rdzv-endpoint',
  '--rdzv-id',
  '--rdzv-conf',
  '--master-addr',
  '--master-port',
  '--standalone',
]);

/** Parses `torchrun ...`, `python -m torch.distributed.run ...`, `python file ...`, or torchx's `dist.ddp ...`. */
export function readCommand(words: readonly string[]): StartCommand | undefined {
  const program = programOf(withoutVariables(words));
  return program && { ...program, variables: variablesBefore(words) };
}

function programOf(rest: readonly string[]): Program | undefined {
  const [first = '', ...others] = rest;
  const program = first.split('/').at(-1) ?? '';
  if (program === 'torchrun') return torchrun(others);
  if (/^python[\d.]*$/.test(program)) {
    const [flag, module, ...after] = others.filter((word) => word !== '-u');
    const isTorchrun = flag === '-m' && /^torch\.distributed\.(run|launch)$/.test(module ?? '');
    return isTorchrun ? torchrun(after) : script(others.filter((word) => word !== '-u'));
  }
  if (program === 'torchx') return torchx(others);
  if (program === 'bash' || program === 'sh') return script(others);
  if (/\.(py|sh)$/.test(first)) return script(rest);
  return undefined;
}

/** Removes `NAME=value`, `exec` and `env` before the program. */
const withoutVariables = (words: readonly string[]): string[] => {
  const at = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word) && word !== 'exec' && word !== 'env');
  return at < 0 ? [] : words.slice(at);
};

function variablesBefore(words: readonly string[]): Record<string, string> {
  const before = words.slice(0, words.length - withoutVariables(words).length);
  return Object.fromEntries(
    before.filter((word) => word.includes('=')).map((word) => [word.split('=')[0], word.slice(word.indexOf('=') + 1)]),
  );
}

function script(words: readonly string[]): Program | undefined {
  const isModule = words[0] === '-m';
  const [entryPoint, ...rest] = isModule ? words.slice(1) : words;
  if (entryPoint === undefined || entryPoint.startsWith('-')) return undefined;
  return { launcher: 'script', entryPoint, isModule, arguments: [...rest], others: [] };
}

function torchrun(words: readonly string[]): Program | undefined {
  const options: { option: string; value: string }[] = [];
  let isModule = false;
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at] ?? '';
    if (!word.startsWith('-')) break;
    const [written = '', inline] = word.split(/=(.*)/s);
    const option = written.replaceAll('_', '-');
    if (option === '-m' || option === '--module') isModule = true;
    const takesValue = inline === undefined && !TORCHRUN_FLAGS.has(option);
    options.push({ option, value: inline ?? (takesValue ? (words[++at] ?? '') : '') });
  }
  const [entryPoint, ...rest] = words.slice(at);
  if (entryPoint === undefined) return undefined;
  const optionValue = (...names: string[]) => options.find(({ option }) => names.includes(option))?.value;
  const processes = Number(optionValue('--nproc-per-node'));
  const hosts = Number((optionValue('--nnodes') ?? '').split(':').at(-1));
  const carried = new Set(['--nproc-per-node', '--nnodes', '-m', '--module', ...DRIVER_SETS]);
  return {
    launcher: 'torchrun',
    entryPoint,
    isModule,
    ...(Number.isInteger(processes) && processes > 0 && { processesPerHost: processes }),
    ...(Number.isInteger(hosts) && hosts > 0 && { hosts }),
    arguments: rest,
    others: options.filter(({ option }) => !carried.has(option)),
  };
}

/** `torchx run [--scheduler S] dist.ddp -j 2x8 --script train.py -- arguments`: the component that starts torchrun. */
function torchx(words: readonly string[]): Program | undefined {
  const at = words.indexOf('dist.ddp');
  if (at < 0) return undefined;
  const end = words.indexOf('--', at);
  const own = words.slice(at + 1, end < 0 ? undefined : end);
  const others: { option: string; value: string }[] = [];
  const found: Record<string, string> = {};
  for (let i = 0; i < own.length; i++) {
    const [option = '', inline] = (own[i] ?? '').split(/=(.*)/s);
    const value = inline ?? own[++i] ?? '';
    if (['-j', '--j', '--script', '-m'].includes(option)) found[option.replace(/^-+/, '')] = value;
    else others.push({ option, value });
  }
  const entryPoint = found.script ?? found.m;
  if (entryPoint === undefined) return undefined;
  const [hosts, processes] = (found.j ?? '1x1').split('x').map((part) => Number(part.split(':').at(-1)));
  return {
    launcher: 'torchrun',
    entryPoint,
    isModule: found.script === undefined,
    ...(processes && { processesPerHost: processes }),
    ...(hosts && { hosts }),
    arguments: end < 0 ? [] : words.slice(end + 1),
    others,
  };
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
