import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const FILE = path.join(__dirname, '..', 'lib', 'core', 'planner', 'constants.ts');

/** Writes fitted values into the planner's tables of constants. */
export function writeConstants(fitted: Readonly<Record<string, number>>): void {
  const text = readFileSync(FILE, 'utf8').replace(/^ {2}(\w+): [\d.e-]+,$/gm, (line, name: string) => {
    const value = fitted[name];
    return value === undefined ? line : `  ${name}: ${Number(value.toPrecision(4))},`;
  });
  writeFileSync(FILE, text);
}
