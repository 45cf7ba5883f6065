import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import type { RunSpec } from '../../core/config/run-spec';
import { programArguments } from '../../core/job/job-file';
import { packageRoot } from '../../shared/files/own-package';
import { Refusal, UsageError } from '../exit';

/** Options of the preview of data. */
export interface PreviewOptions {
  /** File or folder with rows. */
  data?: string;
  /** @default - the byte tokenizer, if the run uses it */
  tokenizer?: string;
  /** File for a page. @default - no page */
  html?: string;
  /** @default python3 */
  python?: string;
}

/** Prints the version of Python and the packages of its arguments that it lacks. */
const PROBE =
  'import sys, importlib.util as u; print("%d.%d" % sys.version_info[:2], *[n for n in sys.argv[1:] if u.find_spec(n) is None])';
const OLDEST_MINOR = 10;

/**
 * What the tokenise step of a run would train in the first rows of a file. The step itself renders and masks them, so this needs Python on
 * this machine.
 * @throws UsageError for options, and Refusal for rows that the step would refuse
 */
export function previewData(run: RunSpec | undefined, options: PreviewOptions, colours: boolean): string {
  if (run?.code.builtin !== 'builtin-tokenize')
    throw new UsageError(
      '--data: must be used with a run file with code.source builtin-tokenize, got another; name one',
    );
  const words = [...programArguments(run), ...localFiles(run, options), '--data', options.data ?? ''];
  if (options.html) words.push('--html', options.html);
  if (colours && pc.isColorSupported) words.push('--colours');
  const python = options.python ?? 'python3';
  requirePackages(python, options.tokenizer ? ['jinja2', 'tokenizers'] : ['jinja2']);
  const env = { ...process.env, PYTHONPATH: path.join(packageRoot(), 'containers/trainer'), PYTHONUTF8: '1' };
  const command = ['-B', '-m', 'slipway_trainer.tokenize.preview', ...words];
  const { status, stdout, stderr } = spawnSync(python, command, { env, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status === 0) return stdout.trimEnd();
  const message = stderr.trimEnd().split('\n').at(-1)?.replace('slipway_trainer: error: ', '') ?? '';
  throw new Refusal([{ rule: 'data/preview', level: 'error', path: '--data', message }]);
}

/** Arguments that replace paths in the container, which this machine does not have. */
function localFiles({ code, tokenizer = {} }: RunSpec, options: PreviewOptions): string[] {
  const { tokenizer: inContainer = 'byte' } = code.arguments;
  if (!options.tokenizer && inContainer !== 'byte')
    throw new UsageError(
      `--tokenizer: must be the tokenizer.json of the run on this machine, which has no ${inContainer}; add --tokenizer FILE`,
    );
  const { chatTemplate } = tokenizer;
  const words = options.tokenizer ? ['--tokenizer', options.tokenizer] : [];
  if (!chatTemplate || /\{[{%]/.test(chatTemplate)) return words;
  const beside = path.join(path.dirname(options.tokenizer ?? '.'), path.basename(chatTemplate));
  if (!existsSync(beside))
    throw new UsageError(
      `--tokenizer: must have ${path.basename(chatTemplate)} beside it, got no ${beside}; copy it there`,
    );
  return [...words, '--chat-template', beside];
}

function requirePackages(python: string, packages: readonly string[]): void {
  const { stdout, error } = spawnSync(python, ['-c', PROBE, ...packages], { encoding: 'utf8' });
  const [version, ...missing] = error ? [] : stdout.trim().split(' ');
  const isOld = Number(version?.split('.')[1]) < OLDEST_MINOR;
  if (version && !isOld && missing.length === 0) return;
  const got = version
    ? `Python ${version}${missing.length > 0 ? ` without ${missing.join(' and ')}` : ''}`
    : `no ${python}`;
  throw new UsageError(
    `--python: must be Python 3.${OLDEST_MINOR} or later with ${packages.join(' and ')}, got ${got}; install them (pip install ${packages.join(' ')}), or name another Python`,
  );
}
