// The rules make defects of version 0.1.0 visible that the embedded AWS let pass before. Two of them are looked at again here, one of a
// whole stack and one of a service; docs/emulator-0.1.0.json has what was seen of all.
import { expect, test } from 'vitest';
import { observe } from '../../scripts/emulator/record';
import { recorded } from '../../scripts/emulator/recorded';

test.each([8, 6])('finding %i about version 0.1.0 shows with the rules, as it is recorded', async (finding) => {
  const { rows } = await observe([finding], ['now']);
  const row = recorded().rows.find((each) => each.finding === finding);
  expect(rows[0]?.now).toEqual(row?.now);
  expect(rows[0]?.now?.shows).toBe(true);
});
