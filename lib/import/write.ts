import { stringify } from 'yaml';
import { formatValue } from '../spec/issue';
import type { NotCarried } from './differences';
import type { Draft } from './draft';

/** The text of a run file: a comment with the source and the values that were not imported, followed by the options. */
export function runFileText(draft: Draft, notCarried: readonly NotCarried[], source: string): string {
  const comments = [
    `Imported from ${oneLine(source)}.`,
    ...(notCarried.length > 0 ? ['Not carried over:'] : []),
    ...notCarried.map(({ field, value, why }) => `  ${oneLine(field)} = ${formatValue(value)}: ${oneLine(why)}`),
  ];
  const head = comments.map((line) => `# ${line}`.trimEnd()).join('\n');
  return `${head}\n${stringify(draft, { lineWidth: 0 })}`;
}

const oneLine = (text: string): string => text.replace(/\s*[\r\n]+\s*/g, ' ');
