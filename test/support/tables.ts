// Tables of cases in YAML, each with what must come of it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Document, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml';

/** One case of a table: what it gives, and what must come of it. */
interface AnyCase {
  name?: string;
  [field: string]: unknown;
}
interface AnyTable<Case extends AnyCase> {
  cases: Case[];
}

const isUpdate = process.env.UPDATE_FIXTURES === '1';

/** Writes what is so now into the file, beside what the file says of the cases. */
function updated<Case extends AnyCase>(document: Document, outcomes: readonly (readonly [Case, object])[]): string {
  outcomes.forEach(([, outcome], i) => {
    const node = (document.get('cases') as YAMLSeq<YAMLMap>).items[i];
    for (const [key, value] of Object.entries(outcome))
      node?.set(key, document.createNode(value, { flow: Array.isArray(value) && value.length === 0 }));
  });
  return document.toString({ lineWidth: 0 });
}

/**
 * Tests every table of a folder: `outcomeOf` gives what comes of a case, by the names that the case has it under. With UPDATE_FIXTURES=1 it writes
 * the outcomes instead: read the difference.
 */
export function testCases<Case extends AnyCase, Table extends AnyTable<Case>>(
  folder: string,
  outcomeOf: (table: Table, given: Case) => object,
): void {
  describe.each(readdirSync(folder))('%s', (name) => {
    const file = path.join(folder, name);
    const document = parseDocument(readFileSync(file, 'utf8'));
    const table = document.toJS() as Table;
    if (isUpdate) {
      const outcomes = table.cases.map((given) => [given, outcomeOf(table, given)] as const);
      writeFileSync(file, updated(document, outcomes));
    }
    test.each(table.cases.map((given) => [given.name ?? JSON.stringify(given).slice(0, 300), given] as const))(
      '%s',
      (_name, given) => {
        const outcome = JSON.parse(JSON.stringify(outcomeOf(table, given))) as object;
        const expected = Object.fromEntries(Object.keys(outcome).map((key) => [key, given[key]]));
        expect(outcome).toEqual(isUpdate ? expect.anything() : expected);
      },
    );
  });
}
