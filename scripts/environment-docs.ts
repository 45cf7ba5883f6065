// Writes the generated parts of docs/environment.md: what a change replaces, and the standing cost of an environment.
import { readFileSync, writeFileSync } from 'node:fs';
import { withGenerated } from './environment-tables';

const FILE = 'docs/environment.md';
writeFileSync(FILE, withGenerated(readFileSync(FILE, 'utf8')));
