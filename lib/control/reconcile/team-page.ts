import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { Descriptor } from '../../core/config/descriptor';
import { teamPageKey } from '../../core/contracts/storage';
import { METRIC_NAMESPACE, TEAM_DIMENSIONS, TEAM_METRICS, type TeamMetric } from '../../core/contracts/team-metrics';
import { teamKeyEncryption } from '../../core/job/team-key';
import { monthOf } from '../../core/lifecycle/accounting/month-spend';
import { progressPercent } from '../../core/lifecycle/accounting/outlook';
import { isSteady, TICK_MS } from '../../core/lifecycle/health/observation-schedule';
import { type EpochMs, isOver, type RunRecord } from '../../core/lifecycle/record';
import { time } from '../../report/page/format';
import { renderTeamPage } from '../../report/render-team-page';
import { type TeamReport, teamMonth, teamRun } from '../../report/team/team-report';
import { eachInTurn } from '../../shared/aws/pace';
import { readDescriptor } from '../shared/descriptors';
import { describeError } from '../shared/errors';
import { isQueued, runningRun, usesInstances } from '../shared/queue-runs';
import { FLEET, queuePositions, type RunFigures, runAnswer, runFigures } from '../shared/run-answer';
import { teamSpendUsd } from '../shared/team-budget';
import type { ReconcileDeps } from './deps';

const NEWEST_RUNS = 200;

/** What a tick reads of a team. */
export interface TeamState {
  /** Newest first. */
  newest: RunRecord[];
  /** Spend of the calendar month, USD. */
  spentUsd: number;
}

/**
 * Reads the state of teams, of each team once per tick, for its metrics and its page.
 * @param active all runs that are not over
 */
export function teamStates(deps: ReconcileDeps, active: readonly RunRecord[]): (team: string) => Promise<TeamState> {
  const known = new Map<string, Promise<TeamState>>();
  const read = async (team: string): Promise<TeamState> => ({
    newest: await deps.store.ofTeam(team, NEWEST_RUNS),
    spentUsd: await teamSpendUsd(deps, team, active),
  });
  return (team) => {
    const state = known.get(team) ?? read(team);
    known.set(team, state);
    return state;
  };
}

/** Time that a tick may spend on pages; the teams that are left out then come first at another tick. */
const PAGES_MS = 20_000;
/** Remaining time of the invocation from which no further page is begun. */
const PAGE_RESERVE_MS = 5000;
/** A page also shows the runs that ended within this time. */
const LATELY_MS = 7 * 86_400_000;
/** Of a team without active runs, whose page shows none, a change can only be slow: it is looked for at the first tick of an hour. */
const IDLE_TICKS = 3_600_000 / TICK_MS;
/** Prefix of the digest of a page without active runs. */
const IDLE = 'idle ';
const AT_ONCE = 8;

interface PageInputs {
  /** All runs that are not over. */
  active: readonly RunRecord[];
  stateOf(team: string): Promise<TeamState>;
  positions: ReadonlyMap<string, number>;
  now: number;
}

/**
 * Writes the page of each team to the artifact bucket, where people of the team open it through a link (`slipway team --link`). A page is
 * written when something on it other than its time has changed: the run table keeps the digest of the last one. Nothing depends on pages:
 * one that cannot be written is logged, and tried again at the next tick.
 * @param teams in the order in which they are written while there is time
 */
export async function writeTeamPages(
  deps: ReconcileDeps,
  teams: readonly string[],
  inputs: Pick<PageInputs, 'active' | 'stateOf'>,
): Promise<void> {
  if (teams.length === 0) return;
  const now = deps.now().getTime();
  try {
    const written = await deps.store.findPages();
    const positions = await queuePositions(deps, inputs.active, now);
    const next = await writeEach(deps, teams, { ...inputs, positions, now }, written);
    if (!isDeepStrictEqual(next, written)) await deps.store.savePages(next);
  } catch (error) {
    deps.log('warn', 'the pages of the teams were not written', { error: describeError(error) });
  }
}

async function writeEach(
  deps: ReconcileDeps,
  teams: readonly string[],
  inputs: PageInputs,
  written: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const next = { ...written };
  for (const [done, team] of teams.entries()) {
    const isLate = deps.now().getTime() - inputs.now > PAGES_MS || (deps.remainingMs?.() ?? PAGES_MS) < PAGE_RESERVE_MS;
    if (isLate) {
      deps.log('warn', 'a tick had no time to write the page of every team', { done, teams: teams.length });
      break;
    }
    const isIdle = !inputs.active.some((run) => run.team === team);
    if (isIdle && written[team]?.startsWith(IDLE) && Math.floor(inputs.now / TICK_MS) % IDLE_TICKS > 0) continue;
    try {
      const digest = await writePage(deps, team, inputs, written[team]?.replace(IDLE, ''));
      const { newest } = await inputs.stateOf(team);
      next[team] = isIdle && newest.every(isOver) ? `${IDLE}${digest}` : digest;
    } catch (error) {
      deps.log('warn', 'the page of a team was not written', { team, error: describeError(error) });
    }
  }
  return next;
}

/**
 * Writes the page unless its content has this digest. Returns the digest of what is written now. The digest is that of the page without its
 * time, so that a newer version of the page itself is written too.
 */
async function writePage(deps: ReconcileDeps, team: string, inputs: PageInputs, before?: string): Promise<string> {
  const descriptor = await readDescriptor(deps, team);
  const report = await reportOf(deps, descriptor, inputs);
  const page = renderTeamPage(report, 'control-plane');
  const digest = hash('sha256', page.replaceAll(time(report.readAt), ''));
  if (digest === before) return digest;
  await deps.s3.send(
    new PutObjectCommand({
      Bucket: descriptor.artifactBucket,
      Key: teamPageKey(team),
      Body: page,
      ContentType: 'text/html; charset=utf-8',
      CacheControl: 'no-cache',
      ...teamKeyEncryption(descriptor),
    }),
  );
  return digest;
}

async function reportOf(
  deps: ReconcileDeps,
  { team, budget }: Descriptor,
  { active, stateOf, positions, now }: PageInputs,
): Promise<TeamReport> {
  const { newest, spentUsd } = await stateOf(team);
  const fleet = newest.slice(0, FLEET);
  const month = monthOf(now);
  const listed = [...active.filter((run) => run.team === team), ...newest];
  const { shown, isCut } = shownRuns(listed, Math.min(month.start, now - LATELY_MS));
  const runs = await eachInTurn(shown, AT_ONCE, async (run) => {
    const answer = runAnswer(run, await deps.store.attemptsOf(run), positions, now);
    return teamRun({ ...answer, ...(await figuresOf(deps, run, fleet, now)) }, month, now);
  });
  return {
    environment: deps.environment,
    region: deps.region,
    month: month.name,
    readAt: new Date(now).toISOString(),
    teams: [teamMonth(team, runs, { spentUsd, budgetUsd: budget?.usdPerMonth })],
    notes: [
      'Spend is from the ledger, at list prices or those of the environment; spend and GPU hours are those of the month.',
      'Steps, goodput and expected end of a run that trains normally are at most an hour old.',
      ...(isCut ? [`Of the runs of the team, the page shows the newest ${NEWEST_RUNS} runs.`] : []),
    ],
  };
}

/** Figures of runs that are over or train normally: they change with the record only, which is parsed once while it stays the same. */
const known = new WeakMap<RunRecord, RunFigures>();

/**
 * Goodput and expected end, from the timeline. Those of a run that trains normally are as of its newest heartbeat in the table: its newer
 * steps are not known here, so that later time would count as time without steps.
 */
async function figuresOf(
  deps: ReconcileDeps,
  run: RunRecord,
  fleet: readonly RunRecord[],
  now: EpochMs,
): Promise<RunFigures | { progressPercent: number | null }> {
  if (!mayHaveSteps(run)) return { progressPercent: progressPercent(run) };
  const before = known.get(run);
  if (before) return before;
  const asOf = isSteady(run) ? (run.attempt?.progress?.heartbeatAt ?? now) : now;
  const figures = runFigures(run, await deps.store.timeline(run.runId), fleet, asOf);
  if (isOver(run) || isSteady(run)) known.set(run, figures);
  return figures;
}

/** Whether the timeline of a run may contain steps with their times, without which neither figure is known. */
const mayHaveSteps = ({ attempt }: RunRecord): boolean =>
  attempt !== undefined &&
  (attempt.number > 1 || (attempt.progress?.starts ?? []).some(({ firstStepAt }) => firstStepAt !== null));

/** Runs that are not over, then those that ended since a time. Of a run that two indexes show differently, the later version counts. */
function shownRuns(listed: readonly RunRecord[], since: number): { shown: RunRecord[]; isCut: boolean } {
  const latest = new Map<string, RunRecord>();
  for (const run of listed) if (run.version > (latest.get(run.runId)?.version ?? -1)) latest.set(run.runId, run);
  const all = [...latest.values()]
    .filter((run) => !isOver(run) || (run.endedAt ?? run.createdAt) >= since)
    .sort((a, b) => Number(isOver(a)) - Number(isOver(b)) || b.createdAt - a.createdAt);
  return { shown: all.slice(0, NEWEST_RUNS), isCut: all.length > NEWEST_RUNS };
}

/**
 * Writes the metrics of the teams that have a dashboard, one line each in CloudWatch's embedded metric format, which needs no call and no
 * permission besides logging. Values that cannot be read are left out until the next tick.
 * @param active all runs that are not over
 * @param stateOf reads a team
 */
export async function writeTeamMetrics(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
  stateOf: (team: string) => Promise<TeamState>,
): Promise<void> {
  const { metrics } = deps;
  for (const team of metrics?.teams ?? []) {
    try {
      const values = valuesOf(deps, team, active, await stateOf(team));
      metrics?.write(metricLine(deps, team, values));
    } catch (error) {
      deps.log('warn', 'metrics of a team were not written', { team, error: describeError(error) });
    }
  }
}

function valuesOf(
  deps: ReconcileDeps,
  team: string,
  active: readonly RunRecord[],
  { newest, spentUsd }: TeamState,
): Record<TeamMetric, number> {
  const own = active.filter((run) => run.team === team);
  const training = own.filter(usesInstances);
  const { from, to } = windowBefore(deps.now().getTime());
  return {
    RunsTraining: training.length,
    RunsWaiting: own.filter(isQueued).length,
    InstancesHeld: training.reduce((sum, run) => sum + runningRun(run, {}).instances, 0),
    SpendMonthUsd: Math.round(spentUsd * 100) / 100,
    RunsFailed: newest.filter(({ state, endedAt = 0 }) => state === 'failed' && endedAt >= from && endedAt < to).length,
  };
}

/** The last complete interval of five minutes: every moment belongs to exactly one window, whichever second the schedule fires at. */
function windowBefore(now: number): { from: number; to: number } {
  const length = TICK_MS;
  const to = Math.floor(now / length) * length;
  return { from: to - length, to };
}

/**
 * A line with the values of metrics.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html, 2026-11-23.
 */
function metricLine({ environment, now }: ReconcileDeps, Team: string, values: Record<TeamMetric, number>): string {
  const Metrics = Object.entries(TEAM_METRICS).map(([Name, Unit]) => ({ Name, Unit }));
  const CloudWatchMetrics = [{ Namespace: METRIC_NAMESPACE, Dimensions: [TEAM_DIMENSIONS], Metrics }];
  return JSON.stringify({
    _aws: { Timestamp: now().getTime(), CloudWatchMetrics },
    Environment: environment,
    Team,
    ...values,
  });
}
