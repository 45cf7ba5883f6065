import { execFileSync } from 'node:child_process';
import path from 'node:path';

const TRAINER = path.join(__dirname, '../../containers/trainer');
const PROGRAM = `
import json
from slipway_trainer.arguments import options
from slipway_trainer.tokenize.arguments import options as tokenize_options
print(json.dumps({"builtin": options().described(), "builtin-tokenize": tokenize_options().described()}))
`;

const camelCase = (key: string) => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The text of lib/core/catalog/builtin-arguments.json. Needs python3, not PyTorch. */
export function builtinArguments(): string {
  const env = { ...process.env, PYTHONPATH: TRAINER, PYTHONDONTWRITEBYTECODE: '1' };
  const found = JSON.parse(execFileSync('python3', ['-c', PROGRAM], { encoding: 'utf8', env }));
  const lines = Object.entries<Record<string, Record<string, unknown>>>(found).map(([program, options]) => {
    const rows = Object.entries(options).map(([name, kind]) => {
      const facts = Object.entries(kind).map(([key, value]) => `"${camelCase(key)}": ${valueText(value)}`);
      return `    "${name}": { ${facts.join(', ')} }`;
    });
    return `  "${program}": {\n${rows.join(',\n')}\n  }`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

const valueText = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]` : JSON.stringify(value);
