import path from 'node:path';
import { readScenarioFile } from '../../tools/simulation';
import { pageOf } from '../../tools/simulation/page/page';
import type { RunLane } from '../../tools/simulation/page/simulation-page';
import { specOf } from '../../tools/simulation/scenario/load';
import { play } from '../../tools/simulation/simulate';

const SCENARIO = path.join(__dirname, 'team.yaml');

/** A run with the instances that it holds while it trains. */
export interface Lane extends RunLane {
  instances: number;
}

/** What the control plane did in scripts/pictures/team.yaml, on a virtual clock. */
export interface Simulated {
  hours: number;
  quota: number;
  shares: ReadonlyMap<string, number>;
  lanes: readonly Lane[];
  /** The mail about the run that failed. */
  mail: { subject: string; message: string };
  /** The page of its team. */
  page: string;
}

export async function simulated(): Promise<Simulated> {
  const { value: scenario, issues } = readScenarioFile(SCENARIO);
  if (!scenario)
    throw new Error(`docs:pictures: ${SCENARIO} must be a scenario: ${issues.map(({ message }) => message)}`);
  const { result, world } = await play(scenario, 1);
  const { runs } = pageOf(world, result, 'team');
  const failed = world.runs.find(({ state }) => state === 'failed');
  const mail = failed?.notices.at(-1)?.mail;
  const page = failed && world.s3.read(failed.descriptor.artifactBucket, `teams/${failed.team}/page/index.html`);
  if (!mail || !page) throw new Error('docs:pictures: a run of scripts/pictures/team.yaml must fail');
  const quota = Object.values(scenario.limits ?? {})[0];
  return {
    hours: scenario.until / 3600,
    quota: Number(quota),
    shares: new Map(Object.entries(scenario.environment.teams).map(([team, { share }]) => [team, share])),
    lanes: runs.map((lane) => ({ ...lane, instances: instancesOf(world.runs.find(({ id }) => id === lane.id)) })),
    mail,
    page,
  };
}

const instancesOf = (run: { entry: { text: string } } | undefined): number =>
  specOf(run?.entry.text ?? '')?.compute.instanceCount ?? 0;
