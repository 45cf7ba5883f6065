import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ownPackage } from '../../lib/shared/local/own-package';

const { version } = ownPackage();

test('the Python client, the changelog and the package have one version', () => {
  const text = (file: string) => readFileSync(file, 'utf8');
  expect(/^__version__ = "(.*)"$/m.exec(text('clients/python/src/slipway/__init__.py'))?.[1]).toBe(version);
  expect(/^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$/m.exec(text('CHANGELOG.md'))?.[1]).toBe(version);
});
