import pc from 'picocolors';
import type { Issue } from '../spec/issue';
import type { Loaded } from '../spec/load';
import { parsePath } from '../spec/overrides';

/** Where a verb writes: documents and results to `out`, words for people to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
}

export const processTerminal: Terminal = {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
};

const LABEL = { error: pc.red('error'), warning: pc.yellow('warning'), info: pc.cyan('info') };

/** One line an issue: where, level, message, rule. */
export function issueLine(found: Issue, file: string, positionOf?: Loaded<unknown>['positionOf']): string {
  const position = positionOf?.(parsePath(found.path) ?? []);
  const where = position ? `${file}:${position.line}:${position.column}` : file;
  return `${where}: ${LABEL[found.level]}: ${found.message} ${pc.dim(`[${found.rule}]`)}`;
}

export const json = (value: unknown): string => JSON.stringify(value, null, 2);
