// Every library case by case: all that its rules say of a run file, its layout, and what its strategy hands over at launch, whole, on both sides of
// each limit. After a change that is meant: UPDATE_FIXTURES=1 npx vitest run --project unit test/core/distribution/cases.test.ts, and read the difference.
import path from 'node:path';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { findStrategy } from '../../../lib/core/distribution';
import { testTables } from '../../support/run-cases';

/** The factors of a layout that are not 1, in words. */
function layout(run: RunSpec): string {
  const found = findStrategy(run)?.layout(run);
  if (!found) return 'none';
  return Object.entries(found)
    .flatMap(([name, value]) => (value === 1 ? [] : [`${name} ${value}`]))
    .join(', ');
}

function launch(run: RunSpec): object {
  const found = findStrategy(run);
  return {
    strategy: found?.name,
    hyperparameters: found?.hyperparameters(run),
    environment: found?.environment(run),
    arguments: found?.arguments(run),
  };
}

testTables(path.join(__dirname, 'cases'), { layout: ({ run }) => layout(run), launch: ({ run }) => launch(run) });
