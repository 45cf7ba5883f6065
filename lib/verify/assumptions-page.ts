import type { Assumption, AssumptionArea } from './assumption';
import { ASSUMPTION_AREAS, ASSUMPTIONS } from './assumptions';

const HEAD = `# What Slipway takes for granted about AWS

Nobody who works on Slipway has an AWS account at hand, and the embedded AWS was written by the people who wrote the product: where both rest on the same
assumption, a green run proves nothing. This page lists every such assumption, what it rests on, what relies on it, what users would see if it were wrong, and which
level of [\`slipway verify\`](verify.md) answers it in a real account. It is generated from \`lib/verify/assumptions/\` by \`npm run docs:assumptions\`.

- **Basis**: *documented* by AWS, *reported* by somebody else, *inferred* from documented facts, or *guessed*.
- **Embedded AWS**: whether it *repeats* the assumption (green says nothing), an *independent* implementation answers there (MiniStack, botocore's models, real
  processes), or it is *not modelled*.
- **Probe**: the level of \`slipway verify\` that answers it; *open* means that no probe can, until somebody sees it happen.
`;

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** URLs become links that say where they lead. */
const source = (text: string) =>
  cell(text).replace(/https:\/\/([\w.-]+)(\/[^\s)]*[^\s);,.])?/g, (url, host) => `[${host}](${url})`);

const row = ({ id, claim, basis, source: from, usedBy, ifWrong, embedded, probe }: Assumption) =>
  `| <a id="${id}"></a>\`${id}\` | ${cell(claim)} | ${basis}: ${source(from)} | ${cell(usedBy)} | ${cell(ifWrong)} | ${embedded} | ${probe ?? 'open'} |`;

const section = ({ title, assumptions }: AssumptionArea) =>
  [
    `## ${title}`,
    '',
    '| id | Slipway assumes | basis | used by | if it is wrong | embedded AWS | probe |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...assumptions.map(row),
  ].join('\n');

/** docs/assumptions.md. */
export function assumptionsPage(): string {
  const open = ASSUMPTIONS.filter(({ probe }) => probe === undefined).length;
  const repeated = ASSUMPTIONS.filter(({ embedded }) => embedded === 'repeats it').length;
  const summary =
    `${ASSUMPTIONS.length} assumptions: ${ASSUMPTIONS.length - open} have a probe, ${open} stay open; ` +
    `the embedded AWS only repeats ${repeated} of them.`;
  return `${[HEAD, summary, '', ...ASSUMPTION_AREAS.map(section)].join('\n').replaceAll('\n## ', '\n\n## ')}\n`;
}
