import { readFileSync } from 'node:fs';
import path from 'node:path';
import { withParts } from '../generated-parts';
import { CORRECTED, DECISIONS } from '../moto/decided';
import { MOTO_FAULTS, TEMPLATE_ON_MOTO } from '../moto/template-expected';
import { type Observation, recorded } from './recorded';

const ROOT = path.resolve(__dirname, '..', '..');
const RULES = path.join(ROOT, 'lib', 'sandbox', 'emulator', 'slipway_rules');

/** A rule of the emulator: its name in the table of slipway_rules, the first paragraph of its module, and the pages that it cites. */
export interface EmulatorRule {
  name: string;
  says: string;
  sources: string[];
}

/** The rules, read from the Python modules. */
export function emulatorRules(): EmulatorRule[] {
  const table = readFileSync(path.join(RULES, '__init__.py'), 'utf8');
  return [...table.matchAll(/^ {4}"([a-z-]+)": (\w+),$/gm)].map(([, name = '', module = '']) => {
    const doc = readFileSync(path.join(RULES, `${module}.py`), 'utf8').split('"""')[1] ?? '';
    const [says = ''] = doc.split('\n\n');
    const sources = [...doc.matchAll(/https:\/\/[^\s,;)"]+/g)].map(([url]) => url.replace(/[.:]$/, ''));
    return { name, says: says.replaceAll('\n', ' '), sources };
  });
}

function rulesTable(): string {
  const rows = emulatorRules().map(
    ({ name, says, sources }) =>
      `| \`${name}\` | ${says} | ${sources.map((url, i) => `[${i + 1}](${url})`).join(' ')} |`,
  );
  return ['| rule | behaviour | AWS |', '|---|---|---|', ...rows].join('\n');
}

function findingsTable(): string {
  const { commit, thisCommit, recorded: date, rows } = recorded();
  const cell = (seen: Observation | undefined) =>
    seen ? `${seen.shows ? '**shows**: ' : ''}${seen.saw}` : 'not recorded';
  return [
    `Last recorded ${date}: version 0.1.0 is commit ${commit.slice(0, 7)}, this version ${thisCommit.slice(0, 7)}.`,
    '',
    '| finding about 0.1.0 | 0.1.0 without the rules | 0.1.0 with the rules | this version with the rules |',
    '|---|---|---|---|',
    ...rows.map(
      ({ finding, defect, before, now, thisVersion }) =>
        `| ${finding}. ${defect} | ${cell(before)} | ${cell(now)} | ${cell(thisVersion)} |`,
    ),
  ].join('\n');
}

/** A regular expression over names of calls in a readable form. */
const plain = (pattern: RegExp) =>
  pattern.source
    .replaceAll(/[\\^$]/g, '')
    .replaceAll('|', ' / ')
    .replaceAll('.*', ' ');

function differencesTable(): string {
  const rows = DECISIONS.map(
    ({ call, at, right, aws, source, done }) =>
      `| ${plain(call)} | ${plain(at)} | ${right} | ${aws} ([AWS](${source})) | ${done ?? ''} |`,
  );
  return [
    '| call | member | correct | what AWS documents | consequence for Slipway |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function correctedTable(): string {
  const rows = CORRECTED.map(({ call, said, aws, source }) => `| ${call} | ${said} | [${aws}](${source}) |`);
  return ['| call | MiniStack | AWS |', '|---|---|---|', ...rows].join('\n');
}

function templateText(): string {
  const { unsupported, attributes } = TEMPLATE_ON_MOTO;
  return [
    'moto creates every resource of the types that it supports.',
    `It does not support ${unsupported.map((type) => `\`${type}\``).join(', ')}, nor the attribute ${attributes.map((name) => `\`${name}\``).join(', ')}.`,
    'It fails on these because of its own bugs, which the comparison works around:',
    '',
    ...MOTO_FAULTS.map(({ type, does }) => `- \`${type}\`: ${does}.`),
  ].join('\n');
}

const PARTS: Readonly<Record<string, () => string>> = {
  rules: rulesTable,
  findings: findingsTable,
  corrected: correctedTable,
  differences: differencesTable,
  template: templateText,
};

/** The text of docs/emulator.md with its generated parts updated; each part is between two comments. */
export const withGenerated = (text: string): string => withParts('docs/emulator.md', text, PARTS);
