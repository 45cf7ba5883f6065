import { existsSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import type { RunSpec } from '../../core/config/run-spec';
import { programArguments } from '../../core/job/job-file';
import { UsageError } from '../exit';
import { runTrainerModule } from '../trainer-module';

export interface PreviewOptions {
  /** File or folder with rows. */
  data?: string;
  /** @default - the byte tokenizer, if the run uses it */
  tokenizer?: string;
  /** File for a page. @default - no page */
  html?: string;
  /** @default python3 */
  python?: string;
  /** Number of rows whose tokens are counted; the last line is the result as JSON. @default - none */
  measure?: number;
}

/** The rows of a data set are rendered by the template of a model, and both may be anybody's. */
const LIMITS = { seconds: 300, gib: 4 };

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
  if (options.tokenizer && !existsSync(options.tokenizer))
    throw new UsageError(
      `--tokenizer: must be a tokenizer.json on this machine, got ${options.tokenizer}; name a file`,
    );
  const words = [...programArguments(run), ...localFiles(run, options), '--data', options.data ?? ''];
  if (options.html) words.push('--html', options.html);
  if (options.measure) words.push('--measure', String(options.measure));
  if (colours && pc.isColorSupported) words.push('--colours');
  return runTrainerModule('tokenize.preview', words, {
    python: options.python,
    packages: options.tokenizer ? ['jinja2', 'tokenizers'] : ['jinja2'],
    limits: LIMITS,
    rule: 'data/preview',
    path: '--data',
  });
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
