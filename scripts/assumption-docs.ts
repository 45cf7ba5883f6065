// `npm run docs:assumptions`: docs/assumptions.md from lib/cli/verify/account/assumptions.
import { writeFileSync } from 'node:fs';
import { assumptionsPage } from '../lib/cli/verify/account';

writeFileSync('docs/assumptions.md', assumptionsPage());
