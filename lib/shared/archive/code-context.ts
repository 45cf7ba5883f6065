import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { CODE_IN_IMAGE, type CodeFile, type CodeFolder, type InspectedFile } from '../../core/config/code-source';
import { secretIn } from '../../core/config/formats/secrets';
import { type InlinedRun, inlineConfig, namedConfig } from '../../core/config/inline';
import type { RuleContext } from '../../core/config/rule';
import type { RunSpec } from '../../core/config/run-spec';
import { codeFiles, isWithin, namedText, repositoryOf } from './code-files';
import { pythonFacts } from './python-script';

/**
 * The lines of a requirements file without comments, with continued lines joined.
 * https://pip.pypa.io/en/stable/reference/requirements-file-format/
 */
export const requirementLines = (text: string): string[] =>
  fromUtf16(text)
    .replace(/^(\uFEFF|\u00EF\u00BB\u00BF)/, '')
    .replace(/\\\r?\n/g, ' ')
    .split(/\r\n?|\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');

/** A file that PowerShell has written, which pip decodes by its mark; the text has one character for each byte. */
function fromUtf16(text: string): string {
  const encoding = { '\u00FF\u00FE': 'utf-16le', '\u00FE\u00FF': 'utf-16be' }[text.slice(0, 2)];
  return encoding === undefined ? text : new TextDecoder(encoding).decode(Buffer.from(text, 'latin1'));
}

/** What is read of a file: scripts and files with keys are shorter. */
const START = Buffer.alloc(2 ** 18);

/** Local facts about the run's code, for the rules. */
export function codeContext(
  run: RunSpec,
  runFile: string,
): Pick<RuleContext, 'codeFolder' | 'codeProblem' | 'codeFix'> {
  const { source, builtin } = run.code;
  if (builtin || source === CODE_IN_IMAGE || source.startsWith('s3://')) return {};
  const folder = path.resolve(path.dirname(runFile), source);
  if (!existsSync(folder)) return { codeProblem: 'must be a folder that exists, builtin, or an s3:// archive' };
  if (!statSync(folder).isDirectory()) return { codeProblem: 'must be a folder, not a file' };
  const start = realpathSync(path.dirname(path.resolve(runFile)));
  const repository = repositoryOf(start);
  if (isWithin(repository ?? start, realpathSync(folder))) return { codeFolder: inspected(folder, run.code) };
  return {
    codeProblem: repository
      ? `must be in the run file's Git repository (${repository})`
      : `must be in the run file's folder (${start}), which is in no Git repository`,
    codeFix: repository ? undefined : 'run git init in the folder that holds both, or move the run file above the code',
  };
}

function inspected(folder: string, { entryPoint, requirements = 'requirements.txt' }: RunSpec['code']): CodeFolder {
  const { files, ...rest } = codeFiles(folder);
  const names = new Set(files.map(({ name }) => name));
  const read = (name: string) => (names.has(name) ? startOf(path.join(folder, name)) : undefined);
  const [entry, installed] = [entryPoint, requirements].map((name) => path.posix.normalize(name));
  return {
    files: files.map((file) => ({
      ...inspectedFile(folder, file),
      ...(file.name === entry && entry.endsWith('.py') && scriptFacts(entry, read)),
      ...(file.name === installed && { requirements: requirementLines(read(installed) ?? '') }),
    })),
    ...rest,
  };
}

/** Facts about a script in UTF-8. Where part of one was not read, it may have further options. */
function scriptFacts(entry: string, read: (name: string) => string | undefined) {
  let isCut = false;
  const { options, ...facts } = pythonFacts(entry, (name) => {
    const text = read(name);
    isCut ||= text?.length === START.length;
    return text && Buffer.from(text, 'latin1').toString('utf8');
  });
  return { ...facts, ...(options && !isCut && { options }) };
}

function inspectedFile(folder: string, file: CodeFile): InspectedFile {
  const text = startOf(path.join(folder, file.name));
  const isScript = file.name.endsWith('.sh') || (text.startsWith('#!') && !file.name.endsWith('.py'));
  const isUtf16 = (isScript || file.name.endsWith('.py')) && /^(\u00FF\u00FE|\u00FE\u00FF)/.test(text);
  const windowsLine = isScript ? firstWindowsLine(text) : undefined;
  const markedWord = isScript ? /^\u00EF\u00BB\u00BF\s*([^#\s]\S*)/.exec(text)?.[1] : undefined;
  const oneHostLauncher = isScript ? launcherOfOneHost(text) : undefined;
  const secret = secretIn(text);
  return {
    ...file,
    ...(isUtf16 && { isUtf16 }),
    ...(windowsLine && { windowsLine }),
    ...(markedWord && { markedWord }),
    ...(oneHostLauncher && { oneHostLauncher }),
    ...(secret && { secret }),
  };
}

/** `python -m` with any path. A word is searched once, however long it is: a script may have binary data behind it. */
const PYTHON_MODULE = String.raw`["']?(?:[^\s;&|]*/)?python[\d.]*["']? -m`;

const commandOf = (word: string, module: string) =>
  new RegExp(String.raw`(^|[\s;&|])(${word}|${PYTHON_MODULE} ${module})\s`);

/** Launchers by their command, and the options without which they start ranks on their own host only; the jobs of SageMaker have no ssh. */
const LAUNCHERS: readonly { name: string; command: RegExp; options: RegExp }[] = [
  {
    name: 'deepspeed',
    command: commandOf('deepspeed', String.raw`deepspeed\.launcher\.runner`),
    options: /--no_ssh\b/,
  },
  {
    name: 'accelerate launch',
    command: commandOf('accelerate launch', String.raw`accelerate\.commands\.launch`),
    options: /--(num_machines|machine_rank|config_file)\b/,
  },
  {
    name: 'torchrun',
    command: commandOf('torchrun', String.raw`torch\.distributed\.(run|launch)`),
    options: /--(nnodes|node[-_]rank)\b/,
  },
];

/** The rank of a host that is written as a number, or another value. An address of a rendezvous takes its place. */
const RANK = /--(?:node[-_]rank|machine_rank)[=\s]+(\S+)/;

/** Options for one host, whatever the others are. */
const ONE_HOST = /\s(--standalone|--(nnodes|num_machines)[=\s]+1)\s/;

/** What a script starts on one host. Variables may hold the options, so that a command with others than these is left alone. */
function launcherOfOneHost(text: string): string | undefined {
  const lines = text.replace(/\\\r?\n/g, ' ').split('\n');
  const starts = lines.flatMap((line) => {
    const launcher = /^\s*#/.test(line) ? undefined : LAUNCHERS.find(({ command }) => command.test(line));
    return launcher ? [{ line, ...launcher }] : [];
  });
  const areAlone = starts.every(
    ({ line, options }) => ONE_HOST.test(line) || !(/\$(?!@|\*|\{?SM_NUM_GPUS\b)/.test(line) || options.test(line)),
  );
  if (starts[0] && areAlone) return `${starts[0].name} for one host`;
  const ranks = new Set(starts.map(({ line }) => RANK.exec(line)?.[1]));
  const [rank = ''] = ranks;
  const isSame = ranks.size === 1 && /^\d+$/.test(rank) && !starts.some(({ line }) => /--rdzv[-_]/.test(line));
  return isSame ? `${starts[0]?.name} with rank ${rank} on each host` : undefined;
}

function startOf(file: string): string {
  const opened = openSync(file, 'r');
  try {
    return START.toString('latin1', 0, readSync(opened, START));
  } finally {
    closeSync(opened);
  }
}

/** As the driver does before it starts the script: an installer may have binary data behind its script. */
function firstWindowsLine(text: string): number | undefined {
  const [script = ''] = text.split('\0');
  const index = script.split('\n').findIndex((line) => line.endsWith('\r'));
  return index < 0 ? undefined : index + 1;
}

/** A config.json in S3, with the URI under which the run file names it. */
export interface FetchedConfig {
  uri: string;
  text: string;
}

/**
 * Inserts the content of a config.json beside the run file in place of its name. If the file cannot be read the name stays, which a rule
 * rejects; the same applies to an S3 URI, unless its content has been downloaded.
 */
export function withModelConfig(
  file: string,
  text: string,
  overrides: readonly string[] = [],
  fetched?: FetchedConfig,
): InlinedRun {
  const name = namedConfig(text, overrides);
  const config = name === undefined ? undefined : name === fetched?.uri ? fetched.text : namedText(file, name);
  return config === undefined ? { text, overrides: [...overrides] } : inlineConfig(text, overrides, config);
}
