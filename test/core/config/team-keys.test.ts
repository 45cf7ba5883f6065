import { expect, test } from 'vitest';
import { teamKeysOf } from '../../../lib/core/config/descriptor';
import { specOf } from '../../cdk/support/app';

const ARN = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';

test('a team has a key of its own when it says so, and shares the key of the environment else', () => {
  const { teams } = specOf({
    teams: { nlp: { kmsKey: 'own' }, vision: { kmsKey: ARN }, speech: { kmsKey: 'shared' }, ops: {} },
  });
  expect(teamKeysOf(teams)).toEqual({ nlp: 'own', vision: ARN });
});
