import { existsSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { plainJson, plainText } from '../core/config/formats/plain-text';
import type { Issue } from '../core/config/issue';
import type { Loaded } from '../core/config/load';
import { parsePath } from '../core/config/reading/overrides';
import { ENDING_SIGNALS } from '../shared/local/ending-signals';
import { packageRoot } from '../shared/local/own-package';
import { EXIT } from './exit';

/** The output of a verb: documents and results go to `out`, messages for people to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
}

/** The terminal of this process: standard output, standard error, and their properties from the environment. */
export const processTerminal: Terminal = {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
};

/**
 * Lets this process go on without a reader, which is not an error: one that has seen enough (`slipway logs RUN | head`) closes the pipe, and
 * a person closes the terminal (EIO). Without a reader of its results a verb ends; without one of its messages it goes on to its result.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && !(error.code === 'EIO' && stream.isTTY)) throw error;
      if (stream === process.stdout) process.exit(process.exitCode ?? 0);
    });
}

/** The colours that `picocolors` writes here. */
const COLOUR = new RegExp(`(${'\u001b'}\\[(?:[012]|22|3[1-9])m)`);

/**
 * A terminal that receives no escape sequences and no invisible characters, except our own colours, line feeds and tabs. All output of
 * verbs passes through it. A text that belongs in one line must also lose its line feeds (`plainLine`).
 */
export function plainTerminal({ out, err }: Terminal): Terminal {
  const plain = (text: string) =>
    text
      .split(COLOUR)
      .map((part, i) => (i % 2 === 0 ? plainText(part) : pc.isColorSupported ? part : ''))
      .join('');
  return { out: (text) => out(plain(text)), err: (text) => err(plain(text)) };
}

const LABEL = { error: pc.red('error'), warning: pc.yellow('warning'), info: pc.cyan('info') };

/** One line per issue: position, level, message, rule. */
export function issueLine(found: Issue, file: string, positionOf?: Loaded<unknown>['positionOf']): string {
  const position = positionOf?.(parsePath(found.path) ?? []);
  const where = position ? `${file}:${position.line}:${position.column}` : file;
  const page = pageOf(found.rule);
  const link = page ? `\n  ${pc.dim(page)}` : '';
  return `${where}: ${LABEL[found.level]}: ${found.message} ${pc.dim(`[${found.rule}]`)}${link}`;
}

/** The documentation page of a rule, if SLIPWAY_DOCS_URL is set; undefined for issues that do not come from a rule. */
function pageOf(rule: string): string | undefined {
  const site = process.env.SLIPWAY_DOCS_URL;
  const [topic, ...name] = rule.split('/');
  if (!site || !existsSync(path.join(packageRoot(), 'docs/rules', `${topic}.md`))) return undefined;
  return `${site.replace(/\/$/, '')}/rules/${topic}.html#${name.join('-')}`;
}

/** The value as indented JSON, the format of every `--json` output that is one document. */
export const json = (value: unknown): string => plainJson(JSON.stringify(value, null, 2));

/** The value as JSON in one line, the format of every `--json` output that is a sequence of documents. */
export const jsonLine = (value: unknown): string => plainJson(JSON.stringify(value));

/** A person who interrupts so often does not wait for a service that does not answer. */
const LAST_SIGNAL = 3;

/**
 * Runs work that a person may interrupt: the first signal aborts it, the next one changes nothing, so that it can clean up, and the third
 * ends the process.
 * @param onInterrupt called at the first signal
 */
export async function interruptible<T>(
  onInterrupt: () => void,
  work: (interrupted: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let count = 0;
  const onSignal = () => {
    count += 1;
    if (count === LAST_SIGNAL) process.exit(EXIT.interrupted);
    if (count > 1) return;
    onInterrupt();
    controller.abort(new Error('interrupted'));
  };
  for (const signal of ENDING_SIGNALS) process.on(signal, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, onSignal);
  }
}

/** Quotes a word for POSIX shells. */
export const quoted = (value: string): string =>
  /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
