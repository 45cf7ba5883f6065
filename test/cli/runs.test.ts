import path from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/run-cli';
import { RUN_FILES, RUNS } from '../support/run-files';

test.each(RUN_FILES)('runs/%s is valid without errors or warnings', async (file) => {
  const { code, stdout } = await runCli('validate', path.join(RUNS, file), '--json');
  const { issues } = JSON.parse(stdout) as { issues: { level: string; message: string }[] };
  expect(issues.filter((i) => i.level !== 'info').map((i) => i.message)).toEqual([]);
  expect(code).toBe(0);
});
