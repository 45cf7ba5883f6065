// Writes docs/reference/command-line.md from the command line itself. test/cli/reference-page.test.ts fails when it is stale.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { program } from '../lib/cli/main';
import { processTerminal } from '../lib/cli/terminal';
import { referencePage } from './reference-page';

const page = referencePage(program(processTerminal, () => undefined));
writeFileSync(path.join(__dirname, '../docs/reference/command-line.md'), page);
