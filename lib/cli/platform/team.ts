import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import { hasEnded, type StatusAnswer } from '../../core/contracts/control';
import { teamPageKey } from '../../core/contracts/storage';
import type { Month } from '../../core/lifecycle/accounting/month-spend';
import { activeRuns, endedRuns, queuedRuns, type TeamReport, teamMonth, teamRun } from '../../report/team/team-report';
import { eachInTurn } from '../../shared/aws/pace';
import { awsClient } from '../aws-client';
import { isDenied, serviceError } from '../aws-errors';
import { EXIT, UsageError } from '../exit';
import { writePage } from '../page-file';
import { MAX_RUNS, readRuns, readStatus } from '../runs/control-client';
import { json, type Terminal } from '../terminal';
import { type CostOptions, monthOf, readTeams } from './costs';

export interface TeamOptions extends CostOptions {
  costs?: boolean;
  html?: string;
  link?: boolean;
}

/** Number of runs that are read in parallel: each is a call of the team's control function. */
const AT_ONCE = 8;

/** `slipway team ENVIRONMENT [--html OUT]`: shows runs, queue, spend and goodput of the month, by team. */
export async function team(environment: string, options: TeamOptions, terminal: Terminal): Promise<number> {
  const month = monthOf(options.month, new Date());
  const { region, descriptors } = await readTeams(environment, options);
  const read = await Promise.all(descriptors.map((descriptor) => readTeam(descriptor, month)));
  const report: TeamReport = {
    environment,
    region,
    month: month.name,
    readAt: new Date().toISOString(),
    teams: read.map((one) => one.team).sort((a, b) => a.team.localeCompare(b.team)),
    notes: [
      'Spend is from the ledger: list prices, or those of the environment; slipway team ENVIRONMENT --costs compares it with the bill.',
      ...(read.some(({ isCut }) => isCut)
        ? [`The launcher lists ${MAX_RUNS} runs of a team: older runs are not included.`]
        : []),
    ],
  };
  if (options.html) {
    const { renderTeamPage } = await import('../../report/render-team-page.js');
    writePage(options.html, renderTeamPage(report), terminal);
  }
  if (options.json) terminal.out(json(report));
  else terminal.out(teamText(report));
  return EXIT.done;
}

async function readTeam(descriptor: Descriptor, month: Month) {
  const listed = await readRuns(descriptor, { limit: MAX_RUNS });
  const wanted = listed.filter((run) => !hasEnded(run) || mayTouch(run, month));
  const whole = await eachInTurn(wanted, AT_ONCE, ({ runId }) => readStatus(descriptor, runId));
  const runs = whole.map((run) => teamRun(run, month, Date.now()));
  return {
    team: teamMonth(descriptor.team, runs, {
      spentUsd: runs.reduce((sum, { spentUsd }) => sum + spentUsd, 0),
      budgetUsd: descriptor.budget?.usdPerMonth,
    }),
    isCut: listed.length === MAX_RUNS,
  };
}

/** Whether attempts of a finished run may be within the month. The list contains only the newest attempt. */
function mayTouch({ attempt, attempts }: StatusAnswer, { start, end }: Month): boolean {
  const last = attempts.at(-1);
  if (!last?.endedAt) return true;
  const hasEarlier = (attempt ?? 1) > 1;
  return Date.parse(last.endedAt) >= start && (hasEarlier || Date.parse(last.startedAt ?? last.endedAt) < end);
}

function teamText(report: TeamReport): string {
  const rows = report.teams.map((month) => [
    month.team,
    String(activeRuns(month).length),
    String(queuedRuns(month).length),
    String(endedRuns(month).length),
    month.spentUsd.toFixed(2),
    month.budgetUsd === null ? '' : month.budgetUsd.toFixed(0),
    month.goodput === null ? '' : `${(100 * month.goodput).toFixed(1)} %`,
    month.gpuHours === null ? '' : month.gpuHours.toFixed(1),
    month.gpuUtilizationPercent === null ? '' : `${month.gpuUtilizationPercent.toFixed(0)} %`,
  ]);
  const heads = ['team', 'running', 'waiting', 'ended', 'spent', 'budget', 'goodput', 'GPU hours', 'GPUs busy'];
  return textTable(heads, rows);
}

/** Validity of a link; it also ends with the credentials that signed it. */
const LINK_SECONDS = 3600;

/**
 * `slipway team ENVIRONMENT --link [--team T]`: prints a link to the page that the control plane publishes, one line for each team. The
 * caller's own credentials sign it, so that it opens nothing that the caller may not read.
 */
export async function pageLink(environment: string, options: TeamOptions, terminal: Terminal): Promise<number> {
  const { region, descriptors } = await readTeams(environment, options);
  const client = awsClient(S3Client, { region });
  const found = await Promise.all(descriptors.map((descriptor) => findLink(client, descriptor)));
  const links = found.flatMap((link) => link ?? []);
  const missing = descriptors.flatMap(({ team }, i) => (found[i] ? [] : [team]));
  if (links.length === 0)
    throw new UsageError(
      `--link: must have a page that you may read, got none of team ${missing.join(', ')}; the control plane writes it within five minutes of a deployment`,
    );
  if (options.json) terminal.out(json({ links }));
  else for (const { url } of links) terminal.out(url);
  for (const { team, writtenAt } of links) terminal.err(`${team}: as of ${writtenAt ?? 'an unknown time'}`);
  for (const team of missing) terminal.err(`${team}: no page that you may read`);
  terminal.err(
    'a link opens for everyone who has it, for an hour at most and no longer than your credentials are valid',
  );
  return EXIT.done;
}

/** Undefined when there is no page. */
async function findLink(client: S3Client, { team, artifactBucket: Bucket }: Descriptor) {
  const place = { Bucket, Key: teamPageKey(team) };
  try {
    const { LastModified } = await client.send(new HeadObjectCommand(place));
    const url = await getSignedUrl(client, new GetObjectCommand(place), { expiresIn: LINK_SECONDS });
    // When the page was written, ISO 8601.
    return { team, url, writtenAt: LastModified?.toISOString() ?? null };
  } catch (error) {
    // S3 answers 403 for a missing object to callers who may not list the bucket.
    if (isDenied(error) || (error as Error).name === 'NotFound') return undefined;
    throw serviceError(`reading s3://${Bucket}/${place.Key}`, error);
  }
}
