import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT, repositoryFiles } from './repository-files';

/** The pages of the documentation, relative to the repository's root. */
export const pages = (): string[] => repositoryFiles('docs/*.md', 'README.md', 'CONTRIBUTING.md');

export const textOf = (page: string): string => readFileSync(path.join(ROOT, page), 'utf8');

/** A fenced block of code. */
export interface Block {
  page: string;
  line: number;
  language: string;
  text: string;
  /** Why it is not run, where a comment `not run: reason` stands on the line before it. */
  reason?: string;
}

const FENCE = /^( *)```(\w+)[^\n]*\n([\s\S]*?)^\1```/gm;

/** The blocks of a page that have a language. */
export function blocksOf(page: string): Block[] {
  const text = textOf(page);
  return [...text.matchAll(FENCE)].map((match) => {
    const [, indent = '', language = '', body = ''] = match;
    const before = text.slice(0, match.index).split('\n');
    return {
      page,
      line: before.length,
      language,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      reason: /<!-- not run: (.+) -->/.exec(before.at(-2) ?? '')?.[1],
    };
  });
}
