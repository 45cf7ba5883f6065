import type { Assumption, AssumptionArea } from './assumption';
import { ASSUMPTION_AREAS, ASSUMPTIONS } from './assumptions';

const HEAD = `# Assumptions about AWS

Slipway was developed without an AWS account, and the embedded AWS was written by the same people as the product. If both rest on the same
assumption, a successful test proves nothing. This page lists every such assumption, its basis, the code that relies on it, the effect if it is wrong, and the
level of [\`slipway verify\`](verify.md) that tests it in a real account. It is generated from \`lib/cli/verify/account/assumptions/\` by \`npm run docs:assumptions\`.

- **Basis**: *documented* by AWS, *reported* by others, *inferred* from documented facts, or *guessed*.
- **Embedded AWS**: it *repeats* the assumption (a successful test proves nothing), an *independent* implementation is used (MiniStack, the models of botocore, real
  processes), or the behaviour is *not modelled*.
- **Probe**: the level of \`slipway verify\` that tests it; *open* means that no probe can test it.
`;

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** Converts URLs to links with the host name as text. */
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

/** Renders docs/assumptions.md. */
export function assumptionsPage(): string {
  const open = ASSUMPTIONS.filter(({ probe }) => probe === undefined).length;
  const repeated = ASSUMPTIONS.filter(({ embedded }) => embedded === 'repeats it').length;
  const summary =
    `${ASSUMPTIONS.length} assumptions: ${ASSUMPTIONS.length - open} have a probe, ${open} are open; ` +
    `the embedded AWS only repeats ${repeated} of them.`;
  return `${[HEAD, summary, '', ...ASSUMPTION_AREAS.map(section)].join('\n').replaceAll('\n## ', '\n\n## ')}\n`;
}
