// Writes docs/reference/command-line.md from the command line itself. test/cli/reference-page.test.ts fails when it is stale.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { referencePage } from '../lib/cli/command-line';
import { program } from '../lib/cli/main';
import { processTerminal } from '../lib/cli/terminal';

const page = referencePage(program(processTerminal, () => undefined));
writeFileSync(path.join(__dirname, '../docs/reference/command-line.md'), page);
