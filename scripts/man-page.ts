// Writes dist/slipway.1 from the command line itself. scripts/build.mjs calls it.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { program } from '../lib/cli/main';
import { manPage } from '../lib/cli/man-page';
import { processTerminal } from '../lib/cli/terminal';

const folder = path.join(__dirname, '../dist');
mkdirSync(folder, { recursive: true });
writeFileSync(path.join(folder, 'slipway.1'), manPage(program(processTerminal, () => undefined)));
