import { readFileSync } from 'node:fs';
import path from 'node:path';
import { withParts } from './generated-parts';

const ROOT = path.resolve(__dirname, '..');
const RULES = path.join(ROOT, 'lib', 'sandbox', 'emulator', 'slipway_rules');

/** A rule of the emulator: its name in the table of slipway_rules, the first paragraph of its module, and the pages that it cites. */
export interface EmulatorRule {
  name: string;
  description: string;
  sources: string[];
}

/** The rules, read from the Python modules. */
export function emulatorRules(): EmulatorRule[] {
  const table = readFileSync(path.join(RULES, '__init__.py'), 'utf8');
  return [...table.matchAll(/^ {8}"([a-z-]+)",$/gm)].map(([, name = '']) => {
    const doc = readFileSync(path.join(RULES, `${name.replaceAll('-', '_')}.py`), 'utf8').split('"""')[1] ?? '';
    const [description = ''] = doc.split('\n\n');
    const sources = [...doc.matchAll(/https:\/\/[^\s,;)"]+/g)].map(([url]) => url.replace(/[.:]$/, ''));
    return { name, description: description.replaceAll('\n', ' '), sources };
  });
}

function rulesTable(): string {
  const rows = emulatorRules().map(
    ({ name, description, sources }) =>
      `| \`${name}\` | ${description} | ${sources.map((url, i) => `[${i + 1}](${url})`).join(' ')} |`,
  );
  return ['| rule | behaviour | AWS |', '|---|---|---|', ...rows].join('\n');
}

/** The text of docs/emulator.md with its generated table updated, which is between two comments. */
export const withGenerated = (text: string): string => withParts('docs/emulator.md', text, { rules: rulesTable });
