import {
  CostExplorerClient,
  GetCostAndUsageCommand,
  type GetCostAndUsageCommandOutput,
} from '@aws-sdk/client-cost-explorer';
import type { Descriptor } from '../../core/config/descriptor';
import { cents } from '../../core/config/formats/numbers';
import { textTable } from '../../core/config/formats/plain-text';
import { monthOf as calendarMonthOf, type Month } from '../../core/lifecycle/accounting/month-spend';
import { gpusIn, spentIn, sumGpuHours, tenths } from '../../report/team/team-report';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { callRegion, readDescriptors } from '../environment/environment';
import { EXIT, UsageError } from '../exit';
import type { CommonOptions } from '../inputs';
import { MAX_RUNS, readRuns, readStatus } from '../runs/control-client';
import { json, type Terminal } from '../terminal';

export interface CostOptions extends CommonOptions {
  team?: string;
  month?: string;
}

/** The only endpoint of Cost Explorer: https://docs.aws.amazon.com/general/latest/gr/billing.html, 2026-11-22. */
const COST_EXPLORER_REGION = 'us-east-1';
const SAGEMAKER = 'Amazon SageMaker';

/** `slipway team ENVIRONMENT --costs [--team T] [--month M]`: compares the ledger of runs with Cost Explorer, by team. */
export async function costs(environment: string, options: CostOptions, terminal: Terminal): Promise<number> {
  const month = monthOf(options.month, new Date());
  const { region, descriptors } = await readTeams(environment, options);
  const [ledger, billed] = await Promise.all([
    Promise.all(descriptors.map(async (descriptor) => [descriptor.team, await ledgerOf(descriptor, month)] as const)),
    billedBy(environment, region, month),
  ]);
  const teams = ledger.map(([team, booked]) => rowOf(team, booked, billed));
  const isCut = ledger.some(([, booked]) => booked.isCut);
  const notes = notesOf(month, isCut, billed);
  if (options.json) terminal.out(json({ environment, region, month: month.name, teams, notes }));
  else printCosts(teams, notes, terminal);
  return EXIT.done;
}

/** @throws UsageError for anything but a month that has begun */
export function monthOf(given: string | undefined, now: Date): Month {
  const name = given ?? now.toISOString().slice(0, 7);
  const start = Date.parse(`${name}-01T00:00:00Z`);
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(name) || start > now.getTime())
    throw new UsageError(
      `--month: must be the current or a past month, got ${name}; write one such as ${now.toISOString().slice(0, 7)}`,
    );
  return calendarMonthOf(start);
}

async function ledgerOf(descriptor: Descriptor, month: Month) {
  const list = await readRuns(descriptor, { limit: MAX_RUNS });
  // The list contains only the newest attempt; all attempts are needed to divide a run between two months.
  const runs = await Promise.all(
    list.map((run) => ((run.attempt ?? 1) <= 1 ? run : readStatus(descriptor, run.runId))),
  );
  const now = Date.now();
  return {
    usd: runs.reduce((sum, run) => sum + spentIn(month, run, now), 0),
    gpuHours: sumGpuHours(runs.map((run) => gpusIn(month, run, now))),
    isCut: list.length === MAX_RUNS,
  };
}

/** USD by `team/service`; the team is '' for a cost without a team tag. */
type Billed = ReadonlyMap<string, number>;

async function billedBy(environment: string, region: string, month: Month): Promise<Billed> {
  const client = awsClient(CostExplorerClient, { region: COST_EXPLORER_REGION });
  const billed = new Map<string, number>();
  let NextPageToken: string | undefined;
  do {
    const page: GetCostAndUsageCommandOutput = await calling('reading Cost Explorer', () =>
      client.send(
        new GetCostAndUsageCommand({
          TimePeriod: { Start: day(month.start), End: day(month.end) },
          Granularity: 'MONTHLY',
          Metrics: ['UnblendedCost'],
          Filter: {
            And: [
              { Tags: { Key: 'slipway:environment', Values: [environment] } },
              { Dimensions: { Key: 'REGION', Values: [region] } },
            ],
          },
          GroupBy: [
            { Type: 'TAG', Key: 'slipway:team' },
            { Type: 'DIMENSION', Key: 'SERVICE' },
          ],
          NextPageToken,
        }),
      ),
    );
    for (const { Keys: [tag = '', service = ''] = [], Metrics } of page.ResultsByTime?.flatMap((r) => r.Groups ?? []) ??
      []) {
      const key = `${tag.replace(/^slipway:team\$/, '')}/${service}`;
      billed.set(key, (billed.get(key) ?? 0) + Number(Metrics?.UnblendedCost?.Amount ?? 0));
    }
    NextPageToken = page.NextPageToken;
  } while (NextPageToken);
  return billed;
}

const day = (time: number): string => new Date(time).toISOString().slice(0, 10);

function rowOf(team: string, { usd: ledgerUsd, gpuHours }: Awaited<ReturnType<typeof ledgerOf>>, billed: Billed) {
  const own = [...billed].filter(([key]) => key.startsWith(`${team}/`));
  const sum = (rows: readonly (readonly [string, number])[]) => rows.reduce((total, [, usd]) => total + usd, 0);
  const sageMakerUsd = sum(own.filter(([key]) => key === `${team}/${SAGEMAKER}`));
  return {
    team,
    /** Cost of the month's attempts according to the run table, at list prices or the environment's own. */
    ledgerUsd: cents(ledgerUsd),
    /** According to Cost Explorer, under the team's tag. */
    sageMakerUsd: cents(sageMakerUsd),
    otherUsd: cents(sum(own) - sageMakerUsd),
    differenceUsd: cents(ledgerUsd - sageMakerUsd),
    /** Null when there were no attempts, or when the control function does not report them. */
    gpuHours: gpuHours === null ? null : tenths(gpuHours),
  };
}

/** Explanations of the differences between the two columns. */
function notesOf(month: Month, isCut: boolean, billed: Billed): string[] {
  const untagged = [...billed].filter(([key]) => key.startsWith('/')).reduce((sum, [, usd]) => sum + usd, 0);
  const notes = [
    'The ledger uses list prices, or `prices` of the environment; Cost Explorer includes discounts, Savings Plans and credits.',
    month.end > Date.now() && 'Cost Explorer is up to one day behind, and the month has not ended.',
    billed.size === 0 &&
      'Cost Explorer has no cost with this tag: activate slipway:environment and slipway:team as cost allocation tags in the payer account; they apply from then on.',
    untagged > 0 &&
      `${untagged.toFixed(2)} USD have the tag of the environment but of no team: buckets, keys, functions, the network.`,
    isCut && `The launcher lists ${MAX_RUNS} runs of a team: older runs are not included here.`,
  ];
  return notes.filter((note) => typeof note === 'string');
}

function printCosts(teams: readonly ReturnType<typeof rowOf>[], notes: readonly string[], terminal: Terminal): void {
  const rows = teams.map((t) => [
    t.team,
    ...[t.ledgerUsd, t.sageMakerUsd, t.differenceUsd, t.otherUsd].map((usd) => usd.toFixed(2)),
    t.gpuHours === null ? '' : t.gpuHours.toFixed(1),
  ]);
  terminal.out(textTable(['team', 'ledger', 'SageMaker billed', 'difference', 'other services', 'GPU hours'], rows));
  for (const note of notes) terminal.err(note);
}

/**
 * The descriptors of the teams of an environment that the caller may read, or that of `--team` alone.
 * @throws UsageError when there is none
 */
export async function readTeams(
  environment: string,
  options: CommonOptions & { team?: string },
): Promise<{ region: string; descriptors: Descriptor[] }> {
  const region = await callRegion(options);
  const isWanted = (team: string) => options.team === undefined || team === options.team;
  const descriptors = await readDescriptors(environment, region, undefined, isWanted);
  if (descriptors.length > 0) return { region, descriptors };
  throw new UsageError(
    `${environment}: must be an environment of ${region}${options.team ? ` with team ${options.team}` : ''} that you may read, got none; check name, region and team`,
  );
}
