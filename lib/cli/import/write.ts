import { Document, visit } from 'yaml';
import { plainJson, plainLine } from '../../core/config/formats/plain-text';
import { formatValue } from '../../core/config/issue';
import type { NotCarried } from './differences';
import type { Draft } from './draft';

/** The text of a run file: a comment with the source and the values that were not imported, followed by the options. */
export function runFileText(draft: Draft, notCarried: readonly NotCarried[], source: string): string {
  const comments = [
    `Imported from ${plainLine(source)}.`,
    ...(notCarried.length > 0 ? ['Not carried over:'] : []),
    ...notCarried.map(({ field, value, why }) => `  ${plainLine(field)} = ${formatValue(value)}: ${plainLine(why)}`),
  ];
  const head = comments.map((line) => `# ${line}`.trimEnd()).join('\n');
  return `${head}\n${yamlOf(draft)}`;
}

/** Texts with characters that are not visible are quoted and escaped, because a terminal does not receive these characters. */
function yamlOf(draft: Draft): string {
  const document = new Document(draft);
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === 'string' && plainJson(scalar.value) !== scalar.value) scalar.type = 'QUOTE_DOUBLE';
    },
  });
  return plainJson(document.toString({ lineWidth: 0 }));
}
