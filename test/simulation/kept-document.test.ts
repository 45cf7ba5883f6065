import { expect, test } from 'vitest';
import { recordOf } from '../../lib/handlers/shared/run-store';
import type { RunRecord } from '../../lib/lifecycle/record';
import { keepRecord, keptAfter, lengthOf, MOST_KEPT, recordOfItem } from '../../lib/simulation/services/kept-document';

const record = { runId: 'a', budgets: {}, note: 'x' } as unknown as RunRecord;
const textOfLength = (length: number) => ({ S: 'x'.repeat(length) });

test('a kept document has the text that the product writes, and who reads it gets the record that it was made of', () => {
  const document = keptAfter(textOfLength(100))(record);
  expect(lengthOf({ document })).toBe(MOST_KEPT);
  expect(document.S).toBe(JSON.stringify(record));
  expect(recordOf(document.S ?? '')).toBe(record);
  expect(lengthOf({ document })).toBe(JSON.stringify(record).length);
  const item = { document };
  keepRecord(item, record);
  expect(recordOfItem(item)).toBe(record);
});

test('the text is made at once where it may be long, or where it was not made for long', () => {
  const isKept = (document: object) => !Object.hasOwn(document, 'S');
  expect(isKept(keptAfter(undefined)(record))).toBe(false);
  expect(isKept(keptAfter(textOfLength(8000))(record))).toBe(true);
  expect(isKept(keptAfter(textOfLength(8001))(record))).toBe(false);
  let document = keptAfter(textOfLength(100))(record);
  let looks = 0;
  while (isKept(document)) {
    looks += 1;
    document = keptAfter(document)(record);
  }
  expect(looks).toBe(48);
  // A text that was read begins again.
  const read = keptAfter(textOfLength(100))(record);
  expect(read.S).toBeDefined();
  expect(isKept(keptAfter(read)(record))).toBe(true);
});
