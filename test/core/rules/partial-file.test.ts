import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { checkPartialRun, undoubted } from '../../../lib/core/rules/partial-file';
import { BASE } from '../../support/runs';

/** What rules say beside the schema, as `path rule`. */
function saidBeside(file: object): string[] {
  const { partial } = loadRun(JSON.stringify(file));
  return partial ? checkPartialRun(partial, {}).map(({ path, rule }) => `${path} ${rule}`) : [];
}
const compute = { ...BASE.compute };
const tokens = 's3://{dataBucket}/tokens/';

test.each([
  [
    'a number out of range in the same section',
    { compute: { ...compute, keepAliveSeconds: 43200, capacity: 'training-plan' } },
    'compute.trainingPlanArn compute/training-plan',
  ],
  [
    'a word that is none of the allowed ones',
    { network: { efa: 'on', isolation: true }, checkpoints: { mode: 'direct' } },
    'checkpoints.mode checkpoints/isolated-direct',
  ],
  [
    'a number that was written as text',
    { compute: { ...compute, instanceCount: '2' }, training: { globalBatchSize: 9, microBatchSize: 2 } },
    'training.globalBatchSize training/global-batch',
  ],
  ['another mistake of the same image', { image: { kind: 'uri', uri: 'ubuntu', cuda: 12 } }, 'image.uri image/uri'],
  ['a bad name', { name: 'BAD', distribution: { library: 'nothing' } }, 'distribution.library distribution/library'],
  [
    'another entry of a list',
    {
      data: [
        { channel: 'a b', s3: tokens },
        { channel: 'c', s3: tokens },
        { channel: 'c', s3: tokens },
      ],
    },
    'data[2].channel data/channels',
  ],
  [
    'a section that is missing',
    { compute: undefined, code: { source: './src', sha256: 'a'.repeat(64) } },
    'code.sha256 code/archive',
  ],
])('a mistake is said beside %s', (_what, rest, wanted) => {
  expect(saidBeside({ ...BASE, ...rest })).toContain(wanted);
});

test.each([
  ['the refused value itself', { distribution: { processesPerHost: 0 } }],
  [
    'what holds for some of the allowed words only',
    { compute: { ...compute, capacity: 'sp0t' }, checkpoints: { mode: 'none' } },
  ],
  [
    'what a misspelled section may have said',
    { compute: { ...compute, capacity: 'spot' }, checkpionts: { mode: 'direct' } },
  ],
])('nothing is said of %s', (_what, rest) => {
  expect(saidBeside({ ...BASE, ...rest })).toEqual([]);
});

test('fails: a section with a key toString where text belongs, without an exception', () => {
  const file = { ...BASE, image: { kind: 'dlc', version: { toString: 1, valueOf: 2 } } };
  expect(loadRun(JSON.stringify(file)).issues).toMatchObject([{ path: 'image.version' }]);
});

const issue = { rule: 'a/rule', path: 'training', level: 'error' as const, message: 'm' };
test.each([
  ['the same in other words', { message: 'n' }, [issue]],
  ['another rule', { rule: 'b/rule' }, []],
  ['another place', { path: 'compute' }, []],
  ['another level', { level: 'warning' as const }, []],
])('what one version of a file is told counts if the other is told %s', (_what, change, kept) => {
  expect(undoubted([[issue], [{ ...issue, ...change }]], [])).toEqual(kept);
});
