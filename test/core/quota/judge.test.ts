import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AppliedLimit,
  freeOf,
  increaseCommand,
  judgeForDeploy,
  judgeForLaunch,
  launchOutcome,
  limitOf,
  neededToStart,
  type QuotaNeed,
  type QuotaRow,
  quotaRequest,
  quotaSentence,
  quotaTable,
  shortRows,
  unreadLimit,
} from '../../../lib/core/quota';

const need = (needed: number, more: Partial<QuotaNeed> = {}): QuotaNeed => ({
  code: 'L-09B4A649',
  name: 'ml.p4d.24xlarge for training job usage',
  needed,
  unit: 'instances',
  kind: 'pool',
  wantedBy: 'compute.instanceCount',
  ...more,
});
const limits = (value: number) => new Map([[need(0).name, { value }]]);
const only = (rows: QuotaRow[]): QuotaRow => {
  const [row] = rows;
  if (!row || rows.length !== 1) throw new Error(`one row expected, got ${rows.length}`);
  return row;
};

test('a deploy compares with the applied limit, whatever is in use', () => {
  expect(only(judgeForDeploy([need(4)], limits(4)))).toMatchObject({ verdict: 'enough', limit: 4, inUse: null });
  expect(only(judgeForDeploy([need(5)], limits(4)))).toMatchObject({
    verdict: 'short',
    reason: 'needs 5, the limit is 4',
  });
});

test('a limit that was not read is unknown with its reason, never zero and never a default', () => {
  const denied = new Map([[need(0).name, { unknown: 'servicequotas:GetServiceQuota was denied' }]]);
  expect(only(judgeForDeploy([need(1)], denied))).toMatchObject({
    verdict: 'unknown',
    limit: null,
    reason: 'servicequotas:GetServiceQuota was denied',
  });
  expect(only(judgeForDeploy([need(1)], new Map())).verdict).toBe('unknown');
});

test('a code found at run time is put into the row', () => {
  const found = new Map([[need(0).name, { value: 4, code: 'L-NEW' }]]);
  expect(only(judgeForDeploy([need(1, { code: undefined })], found)).code).toBe('L-NEW');
});

test('a launch waits for what is not free and is refused above the limit', () => {
  const rows = (needed: number) => judgeForLaunch([need(needed)], limits(8), new Map([[need(0).name, 6]]));
  expect(launchOutcome(rows(2))).toBe('start');
  expect(launchOutcome(rows(3))).toBe('wait');
  expect(only(rows(3)).reason).toBe('needs 3, 2 are free');
  expect(launchOutcome(rows(9))).toBe('refuse');
});

test('one quota that is short decides, however many others are enough', () => {
  const other = need(1, { name: 'other' });
  const both = new Map([...limits(8), ['other', { value: 8 }]]);
  const rows = judgeForLaunch([other, need(3)], both, new Map([[need(0).name, 6]]));
  expect(rows.map(({ verdict }) => verdict)).toEqual(['enough', 'short']);
  expect(launchOutcome(rows)).toBe('wait');
  expect(launchOutcome(judgeForLaunch([other, need(9)], both, new Map()))).toBe('refuse');
  expect(launchOutcome(judgeForLaunch([other, need(1)], new Map([['other', { value: 8 }]]), new Map()))).toBe(
    'unknown',
  );
});

test('a quota without which a job starts decides nothing', () => {
  const optional = need(9, { name: 'pool', isOptional: true });
  const outcome = (pool: AppliedLimit) =>
    launchOutcome(
      judgeForLaunch([need(3), optional], new Map<string, AppliedLimit>([...limits(8), ['pool', pool]]), new Map()),
    );
  expect([outcome({ value: 8 }), outcome({ value: 9 }), outcome({ unknown: 'denied' })]).toEqual([
    'start',
    'start',
    'start',
  ]);
  expect(neededToStart([need(3), optional])).toEqual([need(3)]);
});

test('usage that could not be read makes a pool unknown, and a limit on each job keeps its verdict', () => {
  const rows = judgeForLaunch([need(2), need(2, { kind: 'per-job' })], limits(8), { unknown: 'denied' });
  expect(rows.map((r) => r.verdict)).toEqual(['unknown', 'enough']);
  expect(launchOutcome(rows)).toBe('unknown');
  const above = judgeForLaunch([need(9)], limits(8), { unknown: 'denied' });
  expect(only(above)).toMatchObject({ verdict: 'short', reason: 'needs 9, the limit is 8' });
  expect(launchOutcome(above)).toBe('refuse');
});

test('usage above the limit leaves nothing free', () => {
  expect(freeOf(2, 3)).toBe(0);
});

test('the verdict follows from limit, use and need alone', () => {
  const small = fc.integer({ min: 0, max: 50 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), small, small, (needed, limit, inUse) => {
      const rows = judgeForLaunch([need(needed)], limits(limit), new Map([[need(0).name, inUse]]));
      const expected = needed > limit ? 'refuse' : needed > Math.max(0, limit - inUse) ? 'wait' : 'start';
      expect(launchOutcome(rows)).toBe(expected);
    }),
  );
});

test('the table puts shortfalls first and names quota, code, limit, use and need', () => {
  const rows = [
    ...judgeForDeploy([need(1, { name: 'fine', code: 'L-1' })], new Map([['fine', { value: 4 }]])),
    ...judgeForDeploy([need(5)], limits(4)),
  ];
  expect(quotaTable(rows).split('\n')).toEqual([
    'quota                                   code        limit  in use  needed  verdict',
    'ml.p4d.24xlarge for training job usage  L-09B4A649  4      -       5       short: needs 5, the limit is 4',
    'fine                                    L-1         4      -       1       enough',
  ]);
});

test('the increase asks for what is needed beside what is in use; a sentence names the same facts', () => {
  const row = only(judgeForLaunch([need(3)], limits(8), new Map([[need(0).name, 6]])));
  expect(increaseCommand(row, 'us-west-2')).toBe(
    'aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-09B4A649 --desired-value 9 --region us-west-2',
  );
  expect(increaseCommand({ ...row, code: undefined }, 'us-west-2')).toBeUndefined();
  expect(quotaSentence(row)).toBe('ml.p4d.24xlarge for training job usage (L-09B4A649): limit 8, 6 in use, needed 3');
});

test('a limit is what Service Quotas applies; without a value it is unknown, never a number', () => {
  expect(quotaRequest('L-09B4A649')).toEqual({ ServiceCode: 'sagemaker', QuotaCode: 'L-09B4A649' });
  expect(limitOf('L-09B4A649', { Quota: { Value: 0 } })).toEqual({ value: 0, code: 'L-09B4A649' });
  expect(limitOf('L-09B4A649', {})).toEqual({ unknown: 'Service Quotas returned no value' });
  const failed = { Value: 8, ErrorReason: { ErrorMessage: 'DEPENDENCY_SERVICE_ERROR' } };
  expect(limitOf('L-09B4A649', { Quota: failed })).toEqual({ unknown: 'DEPENDENCY_SERVICE_ERROR' });
  expect(limitOf('L-09B4A649', { Quota: { ErrorReason: {} } })).toEqual({
    unknown: 'Service Quotas returned no value',
  });
});

test.each<[string, unknown, object]>([
  [
    'no quota',
    { name: 'NoSuchResourceException' },
    { unknown: expect.stringContaining('no such quota'), isAbsent: true },
  ],
  [
    'a denied permission',
    { name: 'AccessDeniedException', message: 'not authorized' },
    { unknown: 'servicequotas:GetServiceQuota is not permitted (not authorized)' },
  ],
  [
    'another error',
    { name: 'TooManyRequestsException', message: 'slow down' },
    { unknown: 'TooManyRequestsException: slow down' },
  ],
  ['what is no error', 'broken', { unknown: 'error: broken' }],
])('%s is a limit that is not known', (_name, error, limit) => {
  expect(unreadLimit(error)).toEqual(limit);
});

test('short rows are those that need more than there is, not those that nobody could read', () => {
  const rows = [
    ...judgeForDeploy([need(4)], limits(4)),
    ...judgeForDeploy([need(5)], limits(4)),
    ...judgeForDeploy([need(5)], new Map()),
  ];
  expect(rows.map(({ verdict }) => verdict)).toEqual(['enough', 'short', 'unknown']);
  expect(shortRows(rows)).toEqual(rows.slice(1, 2));
});
