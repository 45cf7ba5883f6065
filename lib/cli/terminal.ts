import { existsSync } from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import type { Issue } from '../spec/issue';
import type { Loaded } from '../spec/load';
import { parsePath } from '../spec/reading/overrides';
import { packageRoot } from './package-root';

/** Where a verb writes: documents and results to `out`, words for people to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
}

/** The terminal of this process: standard output, standard error, and what the environment says about both. */
export const processTerminal: Terminal = {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
};

const LABEL = { error: pc.red('error'), warning: pc.yellow('warning'), info: pc.cyan('info') };

/** One line an issue: where, level, message, rule. */
export function issueLine(found: Issue, file: string, positionOf?: Loaded<unknown>['positionOf']): string {
  const position = positionOf?.(parsePath(found.path) ?? []);
  const where = position ? `${file}:${position.line}:${position.column}` : file;
  const page = pageOf(found.rule);
  const link = page ? `\n  ${pc.dim(page)}` : '';
  return `${where}: ${LABEL[found.level]}: ${found.message} ${pc.dim(`[${found.rule}]`)}${link}`;
}

/** The page of a rule on the documentation's site, where SLIPWAY_DOCS_URL names one; undefined for findings that no rule makes. */
function pageOf(rule: string): string | undefined {
  const site = process.env.SLIPWAY_DOCS_URL;
  if (!site || !existsSync(path.join(packageRoot(), 'docs/rules', `${rule}.md`))) return undefined;
  return `${site.replace(/\/$/, '')}/rules/${rule}.html`;
}

/** The value as indented JSON, as every `--json` prints it. */
export const json = (value: unknown): string => JSON.stringify(value, null, 2);
