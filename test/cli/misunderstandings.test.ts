// What people type and mean something else, and errors of services for which trying again is no help.
import { linkSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { serviceError } from '../../lib/cli/aws-errors';
import { savePage } from '../../lib/cli/page-file';
import { payloadIssue } from '../../lib/control/control/own-run';
import { runCli } from '../support/run-cli';

const RUN = 'runs/builtin/starter.yaml';

test('--set with a variable of the shell that is not set removes nothing; null does', async () => {
  const { code, stderr } = await runCli('validate', RUN, '--set', 'limits.maxCostUsd=');
  expect([code, stderr.trim()]).toEqual([
    2,
    'slipway: --set limits.maxCostUsd=: must have a value, got nothing; write null to remove the option',
  ]);
  expect((await runCli('validate', RUN, '--set', 'limits.maxCostUsd=null')).code).toBe(0);
});

test.each([
  [
    ['list', '--environment', 'research/nlp/x'],
    /^slipway: --environment: must be an environment, .* got research\/nlp\/x; /,
  ],
  [['list', '--environment', '/etc/passwd'], /^slipway: --environment: must be an environment, .* got \/etc\/passwd; /],
  [['list', '--search', ''], /^slipway: --search: must have 1 to 256 characters, got 0; /],
  [['status', 'gpt-1', '--note', ''], /^slipway: --note: must have 1 to 1,000 characters, got 0; /],
  [['status', 's3://b/step-1/'], /^slipway: status: must name a run, got s3:\/\/b\/step-1\/; add --lineage /],
  [['help', 'bogus'], /slipway: help: must name a verb, got bogus; see slipway --help$/],
])('%j is refused, with what was meant', async (words, message) => {
  const { code, stderr } = await runCli(...words, ...(words[0] === 'help' ? [] : ['--region', 'us-west-2']));
  expect([code, stderr.trim()]).toEqual([2, expect.stringMatching(message)]);
});

test('a long value in a payload is cut in the message', () => {
  const input = 'x'.repeat(5000);
  expect(payloadIssue({ path: ['runId'], message: 'must be a run id', input }).message.length).toBeLessThan(250);
});

describe('an error that does not pass', () => {
  const messageOf = (error: object) => serviceError('x', Object.assign(new Error('m'), error)).message;

  test.each([
    ...['AuthFailure', 'InvalidAccessKeyId', 'IncompleteSignature'].map((name) => [{ name }, 'valid AWS credentials']),
    ...['RequestTimeTooSkewed', 'SignatureDoesNotMatch', 'RequestExpired'].map((name) => [{ name }, 'check the clock']),
    [{ name: 'OptInRequired' }, 'name another region'],
    [{ code: 'SELF_SIGNED_CERT_IN_CHAIN' }, 'AWS_CA_BUNDLE'],
    [
      { name: 'CredentialsProviderError', message: 'Error: self-signed certificate in certificate chain' },
      'AWS_CA_BUNDLE',
    ],
    [{ name: 'TypeError', code: 'ERR_INVALID_URL' }, 'AWS_ENDPOINT_URL'],
    [{ name: 'SyntaxError' }, 'check the network, proxies and AWS_ENDPOINT_URL'],
  ] as [object, string][])('%j is not told to be tried again', (error, advice) => {
    const message = messageOf(error);
    expect(message).toContain(advice);
    expect(message).not.toContain('try again');
  });
});

test('a page is written beside the earlier one, which stays whole until then', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-page-'));
  const [file, earlier] = [path.join(folder, 'page.html'), path.join(folder, 'earlier.html')];
  writeFileSync(file, '<!doctype html>old');
  linkSync(file, earlier);
  savePage(file, '<!doctype html>new');
  expect([file, earlier].map((one) => readFileSync(one, 'utf8'))).toEqual(['<!doctype html>new', '<!doctype html>old']);
  expect(readdirSync(folder).sort()).toEqual(['earlier.html', 'page.html']);
});
