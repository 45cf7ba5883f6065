// What an alarm says to the person who gets it: what happened, what it means, and where more is written.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { ROOT } from '../../support/repository-files';
import type { Resources } from '../../templates/support/values';
import { SYNTH_MS } from '../support/app';
import { smallEnvironment } from '../support/small-environment';

vi.setConfig({ testTimeout: SYNTH_MS });

const PAGE = readFileSync(path.join(ROOT, 'docs/environment.md'), 'utf8').replaceAll('\n', ' ');
const descriptions = (resources: Resources): string[] =>
  Object.values(resources).flatMap(({ Type, Properties }) =>
    Type === 'AWS::CloudWatch::Alarm' ? [String(Properties.AlarmDescription)] : [],
  );

test('every alarm says what its section of the page begins with, and links to it where the environment has a site', () => {
  const all = descriptions(smallEnvironment({}));
  expect(all.length).toBeGreaterThan(5);
  for (const text of all) {
    const [, said = '', anchor = ''] =
      /^Slipway research: (.+) See docs\/environment\.md#(alarm-[\w-]+)$/.exec(text) ?? [];
    expect(PAGE, text).toContain(`### ${anchor} ${said}`);
    expect(said, text).toMatch(/\.$/);
  }
  const docsUrl = 'https://docs.example.com/slipway/';
  for (const text of descriptions(smallEnvironment({ notifications: { docsUrl } })))
    expect(text).toMatch(/ See https:\/\/docs\.example\.com\/slipway\/environment\.html#alarm-[\w-]+$/);
});
