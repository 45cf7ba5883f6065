import { cents } from '../../core/config/formats/cents';
import { textTable } from '../../core/config/formats/text-table';
import { type StandingCost, standingCost } from '../../shared/environment/standing-cost';
import { requireEnvironment } from '../environment/environment-file';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { json, type Terminal } from '../terminal';

/** `slipway plan ENVIRONMENT.yaml`: shows the standing cost of each region, without jobs. Offline. */
export function planEnvironment(file: string, text: string, options: CommonOptions, terminal: Terminal): number {
  const { specs } = requireEnvironment(file, text, options);
  const named = specs.filter(({ region }) => options.region === undefined || region === options.region);
  const regions = named.map(standingCost);
  const usdPerMonth = regions.reduce((sum, region) => sum + region.usdPerMonth, 0);
  if (options.json) terminal.out(json({ usdPerMonth: cents(usdPerMonth), regions: regions.map(rounded) }));
  else terminal.out([...regions.map(regionText), ...totalText(regions, usdPerMonth)].join('\n\n'));
  return EXIT.done;
}

const rounded = (region: StandingCost): StandingCost => ({
  ...region,
  usdPerMonth: cents(region.usdPerMonth),
  items: region.items.map((item) => ({ ...item, usdPerMonth: cents(item.usdPerMonth) })),
});

function regionText({ region, items, usdPerMonth, notes }: StandingCost): string {
  const rows = [
    ...items.map((item) => [item.item, String(item.count), item.usdPerMonth.toFixed(2)]),
    ['standing cost', '', usdPerMonth.toFixed(2)],
  ];
  return [textTable([region, 'count', 'USD a month'], rows), ...notes.map((note) => `  ${note}`)].join('\n');
}

const totalText = (regions: readonly StandingCost[], usd: number): string[] =>
  regions.length > 1 ? [`all regions: ${usd.toFixed(2)} USD a month`] : [];
