// `npm run docs:assumptions`: docs/assumptions.md from lib/verify/assumptions.
import { writeFileSync } from 'node:fs';
import { assumptionsPage } from '../lib/verify';

writeFileSync('docs/assumptions.md', assumptionsPage());
