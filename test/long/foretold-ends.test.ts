// The end that status predicts, against the ends of simulated runs with failures.
import { expect, test } from 'vitest';
import { etaFigures, forecastRuns, POPULATIONS } from '../../bench/eta-runs';
import { Random } from '../../tools/simulation/core/random';

/** `npm run bench:eta` measures 200 runs of each kind; looks at one run lie inside or outside together, so that few runs vary much by seed. */
const seed = Number(process.env.SLIPWAY_SEED ?? 20261122);
const RUNS = 12;
/** Least and largest share of intervals that hold the end: both sides of 80 %, as wide as so few runs need. */
const INSIDE = [
  [0.65, 0.99],
  [0.5, 0.99],
  [0.8, 1.01],
] as const;

test.each(POPULATIONS.map((population, i) => [population.name, population, INSIDE[i] ?? [0, 1]] as const))(
  `with %s, half of the ends foretold after a tenth of a run miss by less than a tenth of what is left (seed ${seed})`,
  async (_, population, [least, most]) => {
    const found = await forecastRuns(new Random(seed), RUNS, population);
    const runs = found.filter((run) => run.length > 0);
    expect(runs.length).toBeGreaterThan(RUNS / 2);
    const [first, all] = [etaFigures(runs.flatMap((run) => run.slice(0, 1))), etaFigures(runs.flat())];
    const figures = JSON.stringify({ seed, first, all });
    expect(first.median, figures).toBeLessThan(0.1);
    expect(all.median, figures).toBeLessThan(0.1);
    expect(all.inside, figures).toBeGreaterThan(least);
    expect(all.inside, figures).toBeLessThan(most);
  },
  120_000,
);
