import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { exportLines, unsetLines } from '../../../lib/cli/sandbox/shell-variables';

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
