import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REGIONS } from '../../../lib/core/catalog/regions';

test('the driver reaches S3 under the domain of every region of the catalog', () => {
  const python = readFileSync('containers/driver/slipway_s3/endpoint.py', 'utf8');
  const [, table = ''] = /DOMAINS = \{([^}]*)\}/.exec(python) ?? [];
  const domains = [...table.matchAll(/"([a-z-]+)": "([a-z0-9.-]+)"/g)].map(([, prefix = '', domain = '']) => ({
    prefix,
    domain,
  }));
  expect(domains.length).toBeGreaterThan(3);
  const domainOf = (region: string) =>
    domains.find(({ prefix }) => region.startsWith(prefix))?.domain ?? 'amazonaws.com';
  const wrong = Object.entries(REGIONS).filter(([region, { domain }]) => domainOf(region) !== domain);
  expect(wrong.map(([region, { domain }]) => `${region}: ${domain}, the driver has ${domainOf(region)}`)).toEqual([]);
});
