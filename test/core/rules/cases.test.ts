// What the rules say of a run file, case by case, whole, on both sides of each limit. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/rules/cases.test.ts, and read the difference.
import path from 'node:path';
import { testTables } from '../../support/run-cases';

testTables(path.join(__dirname, 'cases'));
