// `npm run docs:evidence`: the sentence of the README and of the home page about what was run where, from the records in docs/evidence.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { counts, type VerifyRecord } from '../lib/cli/verify/account/record';
import { evidenceSentence } from './evidence-sentence';

const FOLDER = 'docs/evidence';
const START = '<!-- evidence -->';
const END = '<!-- /evidence -->';

const records = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8')) as VerifyRecord);
for (const page of ['README.md', 'docs/index.md']) {
  const [before, rest] = readFileSync(page, 'utf8').split(START);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`${page}: must contain ${START} and ${END}`);
  writeFileSync(page, `${before}${START}\n${evidenceSentence(records)}\n${END}${after}`);
}
for (const record of records)
  process.stdout.write(`${record.region} ${record.level} ${JSON.stringify(counts(record.probes))}\n`);
