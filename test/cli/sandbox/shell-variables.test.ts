import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { exportLines, unsetLines } from '../../../lib/cli/sandbox/sandbox';
import { clientEnv } from '../../../lib/sandbox/environment';
import { runCli } from '../../support/run-cli';

const ENV = { AWS_ENDPOINT_URL: 'https://127.0.0.1:4566', AWS_CA_BUNDLE: "/tmp/it's a folder/bundle.pem" };
/** What a shell with a profile and a token has afterwards. */
const shell = (lines: string[]): string =>
  execFileSync('sh', ['-c', `eval "$LINES"; echo "$AWS_ENDPOINT_URL|$AWS_CA_BUNDLE|$AWS_PROFILE|$AWS_SESSION_TOKEN"`], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, LINES: lines.join('\n'), AWS_PROFILE: 'work', AWS_SESSION_TOKEN: 'old' },
  }).trim();

test('a shell gets the variables as they are, and loses what would win over them', () => {
  expect(shell(exportLines(ENV))).toBe("https://127.0.0.1:4566|/tmp/it's a folder/bundle.pem||");
});

test('a shell is given back', () => {
  expect(shell([...exportLines(ENV), ...unsetLines(ENV)])).toBe('|||');
});

afterEach(() => vi.unstubAllEnvs());

test.each([false, true])(
  'a shell is given back after the sandbox has ended, with a certificate: %s',
  async (hasCertificate) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'slipway-ended-'));
    const bundle = path.join(folder, 'bundle.pem');
    const certificate = hasCertificate ? { certFile: bundle, bundleFile: bundle } : undefined;
    const places = { aws: 'https://127.0.0.1:4566', services: 'https://127.0.0.1:4567', certificate };
    const given = clientEnv({ ...places, region: 'us-west-2', accountId: '111122223333' });
    for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value);
    if (!hasCertificate) vi.stubEnv('AWS_CA_BUNDLE', '/etc/ssl/own.pem');
    const { code, stdout } = await runCli('sandbox', 'env', '--unset', '--state-dir', folder);
    expect([code, stdout.trim().split('\n')]).toEqual([0, unsetLines(given)]);
  },
);

test('a shell whose variables point to AWS keeps them', async () => {
  vi.stubEnv('AWS_ENDPOINT_URL', undefined);
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-ended-'));
  const { code, stdout } = await runCli('sandbox', 'env', '--unset', '--state-dir', folder);
  expect([code, stdout.trim()]).toEqual([0, '']);
});
