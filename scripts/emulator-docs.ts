// `npm run docs:emulator`: writes the generated parts of docs/emulator.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { withGenerated } from './emulator-page';

const FILE = 'docs/emulator.md';
writeFileSync(FILE, withGenerated(readFileSync(FILE, 'utf8')));
