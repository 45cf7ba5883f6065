// The lock file of an environment: its name, what it may hold, how it is written, and which image it names.
import { expect, test } from 'vitest';
import {
  EMPTY_LOCK,
  type ImageLock,
  imageLockText,
  isEnvironmentFileName,
  loadImageLock,
  lockedBaseUri,
  lockFileOf,
} from '../../../lib/core/config/environment/image';

const IMAGE = '763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.13';
const BASE = { image: IMAGE, digest: `sha256:${'a'.repeat(64)}`, resolvedAt: '2026-11-20T00:00:00Z' };
const LOCK: ImageLock = { schema: 1, bases: { 'us-west-2': { cuda: BASE }, 'eu-west-1': { smp: BASE, cuda: BASE } } };

test.each([
  ['research.yaml', 'research.lock.yaml', true],
  ['research.yml', 'research.lock.yaml', true],
  ['research', 'research.lock.yaml', false],
  ['research.lock.yaml', 'research.lock.lock.yaml', false],
  ['research.lock.yml', 'research.lock.lock.yaml', false],
  ['research.json', 'research.json.lock.yaml', false],
  ['lock.yaml', 'lock.lock.yaml', true],
])('the lock file of %s is %s, and it is an environment file by its name: %s', (file, lock, isOne) => {
  expect([lockFileOf(file), isEnvironmentFileName(file)]).toEqual([lock, isOne]);
});

test('what is written is read again, with regions and bases in order', () => {
  const text = imageLockText(LOCK);
  expect(loadImageLock(text)).toMatchObject({ value: LOCK, issues: [] });
  expect([...text.matchAll(/^ +([\w-]+):$/gm)].map(([, key]) => key)).toEqual([
    'eu-west-1',
    'cuda',
    'smp',
    'us-west-2',
    'cuda',
  ]);
  expect(text).toMatch(/^# .*Commit it beside the environment file\.\n/);
  expect(loadImageLock(imageLockText(EMPTY_LOCK)).value).toEqual({ schema: 1, bases: {} });
});

const lockOf = (base: object, more: object = {}) =>
  JSON.stringify({ schema: 1, bases: { 'us-west-2': { cuda: { ...BASE, ...base } } }, ...more });
const AT = 'bases.us-west-2.cuda';

test.each<[string, string[]]>([
  ['{', ['file: must be YAML: Flow map must end with a } (line 1, column 2); correct the line']],
  ['{}', ['schema: must be 1, got nothing; write 1', 'bases: must be given (a section); add bases']],
  ['{"schema": 2, "bases": {}}', ['schema: must be 1, got 2; write 1']],
  [lockOf({}, { more: 1 }), ['more: must be a known option, got more; remove it']],
  [lockOf({ more: 1 }), [`${AT}.more: must be a known option, got more; remove it`]],
  [lockOf({ image: 'a' }), [`${AT}.image: must be an ECR image with a tag, got a; correct the value`]],
  [
    lockOf({ image: IMAGE.split(':')[0] }),
    [`${AT}.image: must be an ECR image with a tag, got ${IMAGE.split(':')[0]}; correct the value`],
  ],
  [
    lockOf({ digest: 'sha256:a' }),
    [`${AT}.digest: must be sha256: and 64 hexadecimal digits, got sha256:a; correct the value`],
  ],
  [lockOf({ resolvedAt: undefined }), [`${AT}.resolvedAt: must be given (text); add resolvedAt`]],
])('fails: %s', (text, messages) => {
  const { value, issues } = loadImageLock(text);
  expect(value).toBeUndefined();
  expect(issues.map(({ message }) => message)).toEqual(messages);
});

test('a place of the file is known when it is read, and when it is refused', () => {
  for (const text of ['schema: 1\nbases: {}\n', 'schema: 1\nbases: 5\n'])
    expect(loadImageLock(text).positionOf(['bases'])).toEqual({ line: 2, column: 8 });
});

test.each([
  ['us-west-2', 'cuda', `${IMAGE.split(':')[0]}@${BASE.digest}`],
  ['us-west-2', 'smp', undefined],
  ['us-east-1', 'cuda', undefined],
])('in %s the base %s is locked to %s', (region, base, uri) => {
  expect(lockedBaseUri(LOCK, region, base)).toBe(uri);
});

test('an image that is none is locked to nothing', () => {
  expect(lockedBaseUri({ schema: 1, bases: { a: { b: { ...BASE, image: 'x' } } } }, 'a', 'b')).toBeUndefined();
});
