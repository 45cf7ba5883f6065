import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { READ_ACTIONS } from '../../lib/core/contracts/control';
import { PYTHON } from '../support/python';
import { DESCRIPTOR } from '../support/runs';

test('a question of somebody who may not launch goes to the alias of auditors, and nothing else does', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-audited-'));
  const file = path.join(folder, 'descriptor.json');
  const alias = (name: string) => `arn:aws:lambda:us-west-2:111122223333:function:${name}:team-nlp`;
  writeFileSync(
    file,
    JSON.stringify({ ...DESCRIPTOR, controlAliasArn: alias('control'), auditAliasArn: alias('audit') }),
  );
  const out = execFileSync(PYTHON, [path.join(__dirname, 'audited_calls.py'), file], { encoding: 'utf8' });
  rmSync(folder, { recursive: true, force: true });
  expect(out.trim().split('\n')).toEqual([
    'control:team-nlp stop',
    'failed True',
    'control:team-nlp list',
    'audit:team-nlp list',
    'answered',
    'audit:team-nlp list',
    'answered',
    'control:team-nlp stop',
    'failed True',
    'control:team-nlp list',
    'failed True',
  ]);
});

test('the actions that it may ask there are those that the function answers', () => {
  const source = readFileSync(path.join(__dirname, '../../clients/python/src/slipway/_control.py'), 'utf8');
  const [, actions = ''] = /^_READ_ACTIONS = \((.*)\)$/m.exec(source) ?? [];
  expect(actions.match(/\w+/g)).toEqual([...READ_ACTIONS]);
});
