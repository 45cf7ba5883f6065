import { readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(__dirname, '..', '..');
const RULES = path.join(ROOT, 'lib', 'sandbox', 'emulator', 'slipway_rules');

/** A rule of the emulator: its name in the table of slipway_rules, the first sentence of its module, and the pages it follows. */
export interface EmulatorRule {
  name: string;
  says: string;
  sources: string[];
}

/** The rules as the Python modules state them. */
export function emulatorRules(): EmulatorRule[] {
  const table = readFileSync(path.join(RULES, '__init__.py'), 'utf8');
  return [...table.matchAll(/^ {4}"([a-z-]+)": (\w+),$/gm)].map(([, name = '', module = '']) => {
    const doc = readFileSync(path.join(RULES, `${module}.py`), 'utf8').split('"""')[1] ?? '';
    const [says = ''] = doc.split('\n\n');
    const sources = [...doc.matchAll(/https:\/\/[^\s,;)"]+/g)].map(([url]) => url.replace(/[.:]$/, ''));
    return { name, says: says.replaceAll('\n', ' '), sources };
  });
}

function rulesTable(): string {
  const rows = emulatorRules().map(
    ({ name, says, sources }) =>
      `| \`${name}\` | ${says} | ${sources.map((url, i) => `[${i + 1}](${url})`).join(' ')} |`,
  );
  return ['| rule | what it says | AWS |', '|---|---|---|', ...rows].join('\n');
}

const PARTS: Readonly<Record<string, () => string>> = { rules: rulesTable };

/** The text of docs/emulator.md with its generated parts as they are now; each stands between two comments. */
export function withGenerated(text: string): string {
  return Object.entries(PARTS).reduce((found, [name, make]) => {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [found.indexOf(begin), found.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/emulator.md: must hold ${begin} and ${end}`);
    return `${found.slice(0, from)}${begin}\n${make()}\n${found.slice(to)}`;
  }, text);
}
