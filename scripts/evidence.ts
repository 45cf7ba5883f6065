// `npm run docs:evidence`: the README's sentence about what was run where, from the records in docs/evidence.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { counts, evidenceSentence, type VerifyRecord } from '../lib/cli/verify/account';

const FOLDER = 'docs/evidence';
const START = '<!-- evidence -->';
const END = '<!-- /evidence -->';

const records = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8')) as VerifyRecord);
const readme = readFileSync('README.md', 'utf8');
const [before, rest] = readme.split(START);
const after = rest?.split(END)[1];
if (before === undefined || after === undefined) throw new Error(`README.md: must contain ${START} and ${END}`);
writeFileSync('README.md', `${before}${START}\n${evidenceSentence(records)}\n${END}${after}`);
for (const record of records)
  process.stdout.write(`${record.region} ${record.level} ${JSON.stringify(counts(record.probes))}\n`);
