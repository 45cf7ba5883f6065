import { expect, test } from 'vitest';
import { runCli } from '../../support/run-cli';

test.each([['status', 'pretrain-261121120000'], ['list']])(
  'fails: %s --events with a time that is none',
  async (...verb) => {
    const { code, stderr } = await runCli(...verb, '--events', '--since', 'soon', '--environment', 'research');
    expect(code).toBe(2);
    expect(stderr).toContain('--since: must be a time or a span');
  },
);
