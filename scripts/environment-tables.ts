import { resolveEnvironments } from '../lib/core/config/environment-file';
import { loadEnvironment } from '../lib/core/config/load';
import { standingCost } from '../lib/shared/environment/standing-cost';
import { withParts } from './generated-parts';
import { OPTION_CHANGES } from './option-changes';

/** Environments whose standing cost the documentation states, in us-west-2. */
const PRICED: readonly [what: string, values: object][] = [
  ['the default: `vpc-locked`', {}],
  ['`vpc-nat`', { network: { mode: 'vpc-nat' } }],
  ['`endpoints: [sts]` in all 4 zones', { network: { endpoints: ['sts'] } }],
  [
    '`packages: codeartifact` in 2 zones',
    {
      network: {
        packages: 'codeartifact',
        codeArtifact: { domain: 'ml', repository: 'pypi' },
        availabilityZoneIds: ['usw2-az1', 'usw2-az2'],
      },
    },
  ],
  [
    '`fsxLustre` of 1,200 GiB at 250 MB/s per TiB',
    { network: { availabilityZoneIds: ['usw2-az2'] }, storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' } } },
  ],
];

const PARTS: Readonly<Record<string, () => string>> = { changes: changesTable, costs: costsTable };

/** The text with its generated parts as they are now; each stands between two comments. */
export const withGenerated = (text: string): string => withParts('docs/environment.md', text, PARTS);

function changesTable(): string {
  const rows = OPTION_CHANGES.map(({ option, effect }) => `| \`${option}\` | ${effect} |`);
  return ['| option | what a change of it does |', '|---|---|', ...rows].join('\n');
}

function costsTable(): string {
  const rows = PRICED.map(([what, values]) => {
    const { items, usdPerMonth } = costOf(values);
    const largest = items.reduce((a, b) => (b.usdPerMonth > a.usdPerMonth ? b : a));
    return `| ${what} | ${usdPerMonth.toFixed(2)} | ${largest.count} × ${largest.item}: ${largest.usdPerMonth.toFixed(2)} |`;
  });
  return ['| environment | USD a month | largest item |', '|---|---|---|', ...rows].join('\n');
}

function costOf(values: object): ReturnType<typeof standingCost> {
  const { value } = loadEnvironment(JSON.stringify({ name: 'docs', regions: { 'us-west-2': {} }, ...values }));
  const [spec] = value ? resolveEnvironments(value) : [];
  if (!spec) throw new Error(`${JSON.stringify(values)}: must be an environment`);
  return standingCost(spec);
}
