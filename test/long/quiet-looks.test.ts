// Every scenario comes to the same whether quiet looks are skipped or not; `npm test` plays a few, drawn by its seed.
import { test } from 'vitest';
import { compareScenario, SCENARIOS } from '../simulation/compare-quiet-looks';

test.each(SCENARIOS)('%s', async (name) => {
  await compareScenario(name);
});
