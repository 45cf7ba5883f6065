import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { play } from '../../../tools/simulation/simulate';
import { nearest } from './alike';
import { type AgreementCase, scenarioOf } from './cases';
import { decisionTimes, type RunOutcome, sandboxOutcome, simulatedOutcomes } from './outcome';
import { SandboxPlay } from './play';
import { Stage } from './stage';

const ENVIRONMENT = `name: research
regions: { us-west-2: {} }
teams: { nlp: { share: 2 }, speech: {}, vision: {} }
storage: { retain: false }
quotas: { enforce: "off" }
`;

/**
 * Tests that the simulation and the sandbox play the same scenarios and that each run comes to the same state, jobs, attempts, decisions and
 * reasons. In the sandbox the product is deployed, its functions run as Lambda's, and each service is the emulator's; clock and jobs follow the
 * scenario.
 */
export function testsOfAgreement(cases: readonly AgreementCase[]): void {
  let stage: Stage;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'slipway-agreement-'));
    stage = await Stage.open('research', ENVIRONMENT, ['nlp', 'speech', 'vision'], folder);
    // Only clocks: the sandbox waits for processes and sockets with real timers.
    vi.useFakeTimers({ toFake: ['Date'] });
  });
  afterAll(async () => {
    vi.useRealTimers();
    await stage?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(cases)('sandbox and simulation agree about $scenario', async (one) => {
    const scenario = scenarioOf(one, ENVIRONMENT);
    const simulated = await play(scenario, 1);
    const expected = simulatedOutcomes(simulated);
    await stage.clear();
    const sandbox = new SandboxPlay(stage, scenario, decisionTimes(simulated));
    await sandbox.play();
    const seen: Record<string, RunOutcome> = {};
    for (const run of sandbox.runs) seen[run.id] = nearest(await sandboxOutcome(stage, run), expected[run.id]);
    expect(seen).toEqual(expected);
  });
}
