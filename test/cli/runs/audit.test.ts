// Somebody who may not invoke the launcher's alias is answered by the alias of auditors, and by nothing else.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { mockClient } from '../../support/mocked-clients';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const FOLDER = mkdtempSync(path.join(tmpdir(), 'slipway-audit-'));
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

const functions = mockClient(LambdaClient);
const alias = (name: string, test: string) => `arn:aws:lambda:us-west-2:111122223333:function:${name}:team-${test}`;
const denied = (message: string) => Object.assign(new Error(message), { name: 'AccessDeniedException' });

/** A descriptor with aliases of this test alone: the command line remembers which alias denied it. */
function environment(name: string, audited = true): string {
  const file = path.join(FOLDER, `${name}.json`);
  const own = { controlAliasArn: alias('control', name), ...(audited && { auditAliasArn: alias('audit', name) }) };
  writeFileSync(file, JSON.stringify({ ...DESCRIPTOR, ...own }));
  return file;
}

const asked = () => functions.commandCalls(InvokeCommand).map(({ args: [{ input }] }) => input.FunctionName);

beforeEach(() => {
  functions.reset();
  functions.on(InvokeCommand).callsFake(({ FunctionName }: { FunctionName: string }) => {
    if (!FunctionName.includes(':audit:')) throw denied('not authorized to perform: lambda:InvokeFunction on control');
    return { Payload: Buffer.from(JSON.stringify({ ok: true, runs: [] })) };
  });
});

test('list falls back to the alias of auditors, and goes there at once the next time', async () => {
  const file = environment('one');
  const { code, stdout } = await runCli('list', '--environment', file, '--json');
  expect([code, JSON.parse(stdout)]).toEqual([0, { runs: [] }]);
  expect(asked()).toEqual([alias('control', 'one'), alias('audit', 'one')]);
  await runCli('list', '--environment', file);
  expect(asked().slice(2)).toEqual([alias('audit', 'one')]);
});

test('fails: stop is asked of the launcher alone', async () => {
  const { code, stderr } = await runCli('stop', 'a-261121120000', '--environment', environment('two'));
  expect(code).toBe(3);
  expect(stderr).toContain('must be permitted');
  expect(asked()).toEqual([alias('control', 'two')]);
});

test('fails: who may invoke neither reads what the launcher said', async () => {
  functions.on(InvokeCommand).callsFake(({ FunctionName }: { FunctionName: string }) => {
    throw denied(`not authorized: ${FunctionName}`);
  });
  const { code, stderr } = await runCli('list', '--environment', environment('three'));
  expect(code).toBe(3);
  expect(stderr).toContain(`not authorized: ${alias('control', 'three')}`);
});

test('fails: an environment that names no auditors', async () => {
  const { code, stderr } = await runCli('list', '--environment', environment('four', false));
  expect(code).toBe(3);
  expect(stderr).toContain('must be permitted');
  expect(asked()).toEqual([alias('control', 'four')]);
});
