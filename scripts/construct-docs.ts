// Writes docs/reference/constructs.md from the documentation comments of lib/cdk. test/docs/constructs.test.ts fails when it is stale.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { exportsOfConstructs } from './constructs/exports';
import { constructsPage } from './constructs/page';

writeFileSync(path.join(__dirname, '../docs/reference/constructs.md'), constructsPage(exportsOfConstructs()));
