import { ASSUMPTION_AREAS, ASSUMPTIONS } from './assumptions';

/** Levels of `slipway verify`; each level includes the previous ones. */
export const LEVELS = ['read', 'deploy', 'train', 'efa'] as const;
/** Level of `slipway verify` whose probe tests an assumption. */
export type Level = (typeof LEVELS)[number];

/** The basis of an assumption, from the strongest to the weakest. */
type Basis =
  /** Stated in AWS's documentation, service model or source code. */
  | 'documented'
  /** Shown by a public issue, sample or measurement. */
  | 'reported'
  /** Follows from documented facts, but no source states it. */
  | 'inferred'
  /** Plausible, but without evidence. */
  | 'guessed';

/** Evidence that a successful run on the AWS emulator provides for the assumption. */
type EmbeddedEvidence =
  /** None: Slipway's emulator implements the same assumption. */
  | 'repeats it'
  /** Some: it was tested against MiniStack, botocore's model or real processes, which are independent of Slipway. */
  | 'independent'
  /** None: the emulator does not implement it. */
  | 'not modelled';

/** An assumption about AWS, with the parts of Slipway that depend on it and the level that tests it. */
export interface Assumption {
  /** Anchor in docs/assumptions.md; never changes once it is published. */
  readonly id: string;
  /** The assumption as one sentence. */
  readonly claim: string;
  readonly basis: Basis;
  /** Source: a URL, or a description of the evidence. */
  readonly source: string;
  /** Parts of Slipway that rely on it. */
  readonly usedBy: string;
  /** Consequences for users if it does not hold. */
  readonly ifWrong: string;
  readonly embedded: EmbeddedEvidence;
  /** Level whose probe tests it; absent = no probe can test it, and it remains open until it is observed. */
  readonly probe?: Level;
}

/** Assumptions about one subject, in the order of docs/assumptions.md. */
export interface AssumptionArea {
  readonly title: string;
  readonly assumptions: readonly Assumption[];
}

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
