import { number, percent, roughUsd, time, UNKNOWN } from './page/format';
import { page, type Section } from './page/page';
import {
  type Html,
  html,
  type ItemColumn,
  type ItemTableProps,
  itemTable,
  legend,
  stackBar,
  tiles,
  word,
} from './page/parts';
import { color, seriesColor } from './page/style';
import {
  activeRuns,
  endedRuns,
  meanGoodput,
  meanGpuUse,
  queuedRuns,
  sumGpuHours,
  type TeamMonth,
  type TeamReport,
  type TeamRun,
} from './team/team-report';

/** Maximum number of rows per table; further runs are only counted. */
const MAX_ROWS = 50;
const TONES: Readonly<Record<string, string>> = {
  completed: color('good'),
  running: color('good'),
  failed: color('bad'),
  stopped: color('muted'),
  queued: color('wait'),
};

type OfTeam = TeamRun & { team: string };

const gather = ({ teams }: TeamReport, pick: (team: TeamMonth) => TeamRun[]): OfTeam[] =>
  teams.flatMap((team) => pick(team).map((run) => ({ ...run, team: team.team })));

const sum = (values: readonly (number | null)[]): number =>
  values.reduce<number>((all, value) => all + (value ?? 0), 0);

function header(report: TeamReport): Html {
  const active = gather(report, activeRuns);
  const failed = gather(report, endedRuns).filter(hasFailed);
  const spent = sum(report.teams.map(({ spentUsd }) => spentUsd));
  const goodput = meanGoodput(gather(report, ({ runs }) => runs));
  return html`<p class="sub">Slipway teams</p>
<h1>${titleOf(report)}</h1>
<p class="sub">${onlyTeam(report) ? 'As' : `${report.teams.map(({ team }) => team).join(', ')} · as`} of ${time(report.readAt)} UTC</p>
${tiles([
  {
    name: 'Running',
    value: number(active.length),
    note: `${number(sum(active.map((run) => run.instances)))} instances`,
  },
  { name: 'Waiting', value: number(gather(report, queuedRuns).length) },
  { name: 'Spent', value: roughUsd(spent), note: 'from the ledger' },
  ...(goodput === null ? [] : [{ name: 'Goodput', value: percent(goodput), note: 'kept steps, weighted by cost' }]),
  { name: 'GPU hours', value: number(sumGpuHours(report.teams), 1), note: busyNote(report) },
  { name: 'Failed', value: number(failed.length) },
])}`;
}

const onlyTeam = ({ teams: [first, ...others] }: TeamReport): TeamMonth | undefined =>
  others.length === 0 ? first : undefined;

const titleOf = (report: TeamReport): string =>
  `${[onlyTeam(report)?.team, report.environment].filter(Boolean).join(', ')} in ${report.region}, ${report.month}`;

/** Mean GPU utilisation over all teams, for runs that report it. */
function busyNote({ teams }: TeamReport): string {
  const busy = meanGpuUse(teams);
  return busy === null ? 'use is not reported' : `${number(busy, 0)} % busy`;
}

/** The parts of several teams, or that of one team in its budget; the share of one team without a budget says nothing. */
function spendBar(report: TeamReport): Html | undefined {
  const only = onlyTeam(report);
  if (only?.budgetUsd === null) return undefined;
  const parts = report.teams.map(({ team: name, spentUsd }, i) => ({ name, value: spentUsd, color: seriesColor(i) }));
  const limits = only ? [{ text: `budget: ${roughUsd(only.budgetUsd)}`, color: color('ink') }] : [];
  return html`${stackBar({
    title: only ? 'Spend and budget' : 'Spend by team',
    description: parts.map(({ name, value }) => `${name}: ${roughUsd(value)}`).join(', '),
    parts,
    limit: only?.budgetUsd ?? undefined,
  })}
${legend([...parts.map((part) => ({ text: part.name, color: part.color })), ...limits])}`;
}

/** A table without the columns of which nothing is known. */
const knownTable = <Item>({ columns, ...props }: ItemTableProps<Item>): Html =>
  itemTable({ ...props, columns: columns.filter(({ cell }) => props.items.some((item) => cell(item) !== UNKNOWN)) });

const busy = ({ gpuUtilizationPercent: use }: Pick<TeamRun, 'gpuUtilizationPercent'>): string =>
  percent(use === null ? null : use / 100);

/** Coloured as a warning from 80 % on: an exhausted budget blocks new runs. */
const budgetShare = (share: number): Html | string =>
  share < 0.8 ? percent(share) : word(percent(share), color(share < 1 ? 'warn' : 'bad'));

type Figures = Pick<TeamRun, 'goodput' | 'gpuHours' | 'gpuUtilizationPercent' | 'spentUsd'>;

const GOODPUT: ItemColumn<Figures> = { head: 'Goodput', kind: 'num', cell: ({ goodput }) => percent(goodput) };
const GPU_HOURS: ItemColumn<Figures> = { head: 'GPU hours', kind: 'num', cell: ({ gpuHours }) => number(gpuHours, 1) };
const BUSY: ItemColumn<Figures> = { head: 'GPUs busy', kind: 'num', cell: busy };
const SPENT: ItemColumn<Figures> = { head: 'Spent', kind: 'num', cell: ({ spentUsd }) => roughUsd(spentUsd) };

const TEAM_COLUMNS: readonly ItemColumn<TeamMonth>[] = [
  { head: 'Team', cell: ({ team }) => team },
  SPENT,
  { head: 'Budget', kind: 'num', cell: ({ budgetUsd }) => (budgetUsd === null ? 'none' : roughUsd(budgetUsd)) },
  {
    head: 'Of budget',
    kind: 'num',
    cell: ({ spentUsd, budgetUsd }) => (budgetUsd === null ? UNKNOWN : budgetShare(spentUsd / budgetUsd)),
  },
  GOODPUT,
  GPU_HOURS,
  BUSY,
  { head: 'Running', kind: 'num', cell: (team) => number(activeRuns(team).length) },
  { head: 'Waiting', kind: 'num', cell: (team) => number(queuedRuns(team).length) },
  { head: 'Ended', kind: 'num', cell: (team) => number(endedRuns(team).length) },
];

type RunColumn = ItemColumn<OfTeam>;

const STATE: RunColumn = {
  head: 'State',
  kind: 'fixed',
  cell: (run) => word(run.state, TONES[run.state] ?? color('warn')),
};
const RUN: RunColumn = { head: 'Run', cell: (run) => html`<code>${run.runId}</code>` };
const TEAM: RunColumn = { head: 'Team', kind: 'fixed', cell: (run) => run.team };
const QUEUE: readonly RunColumn[] = [
  { head: 'Place', kind: 'num', cell: (run) => number(run.queuePosition) },
  { head: 'Reason for waiting', kind: 'long', cell: (run) => run.reason },
];
const FIGURES = [GOODPUT, GPU_HOURS, BUSY, SPENT];
const ACTIVE: readonly RunColumn[] = [
  STATE,
  { head: 'Instances', kind: 'num', cell: (run) => number(run.instances) },
  {
    head: 'Done',
    kind: 'num',
    cell: (run) => (run.progressPercent === null ? UNKNOWN : `${number(run.progressPercent, 1)} %`),
  },
  { head: 'Expected end', cell: (run) => time(run.etaAt) },
  ...FIGURES,
];
const END: RunColumn = { head: 'End', kind: 'fixed', cell: (run) => time(run.endedAt) };
const REASON: RunColumn = { head: 'Reason', kind: 'long', cell: (run) => run.reason };
const ENDED: readonly RunColumn[] = [STATE, END, ...FIGURES, REASON];
const FAILED: readonly RunColumn[] = [{ ...REASON, head: 'First error' }, END, ...FIGURES];

/** What a section shows of runs. */
interface RunsShown {
  runs: readonly OfTeam[];
  columns: readonly RunColumn[];
  /** Which runs, if not all of the title. */
  when?: string;
}

function runsSection(id: string, title: string, { runs, columns, when = '' }: RunsShown): Section {
  if (runs.length === 0) return { id, title, body: html`<p class="sub">None${when}</p>` };
  const left = runs.length - MAX_ROWS;
  return {
    id,
    title,
    body: html`${knownTable({
      caption: `${title}${when}, ${Math.min(runs.length, MAX_ROWS)} of ${runs.length}`,
      layout: 'cards',
      columns,
      items: runs.slice(0, MAX_ROWS),
    })}${left > 0 && html`<p class="sub">${number(left)} more: <code>slipway list --json</code></p>`}`,
  };
}

/** Who writes a team page: `slipway team --html`, or the control plane for people without a terminal. */
export type TeamPageWriter = 'command' | 'control-plane';

const WRITERS: Readonly<Record<TeamPageWriter, Html>> = {
  command: html`Written by <code>slipway team</code>.`,
  'control-plane': html`Written by the control plane, at most every five minutes and only when something on the page changes.`,
};

/** One self-contained HTML page about the teams of an environment in a month. */
export function renderTeamPage(report: TeamReport, writer: TeamPageWriter = 'command'): string {
  const bySpend = (runs: OfTeam[]) => runs.sort((a, b) => b.spentUsd - a.spentUsd);
  const ended = gather(report, endedRuns);
  const failed = ended.filter(hasFailed);
  const others = ended.filter((run) => !hasFailed(run));
  const of = onlyTeam(report) ? [RUN] : [RUN, TEAM];
  const when = ` in ${report.month}${writer === 'command' ? '' : ' or in the last 7 days'}`;
  return page({
    title: titleOf(report),
    header: header(report),
    sections: [
      {
        id: 'spend',
        title: 'Monthly spend',
        body: html`${spendBar(report)}
${knownTable({ caption: 'Teams, by name', layout: 'cards', items: report.teams, columns: TEAM_COLUMNS })}`,
      },
      runsSection('running', 'Running', { runs: bySpend(gather(report, activeRuns)), columns: [...of, ...ACTIVE] }),
      runsSection('queue', 'Queue', { runs: gather(report, queuedRuns), columns: [...of, ...QUEUE] }),
      runsSection('failed', 'Failed', {
        runs: failed.sort((a, b) => (b.endedAt ?? '').localeCompare(a.endedAt ?? '')),
        columns: [...of, ...FAILED],
        when,
      }),
      runsSection('ended', 'Completed or stopped', { runs: bySpend(others), columns: [...of, ...ENDED], when }),
    ],
    footer: html`${WRITERS[writer]} ${report.notes.join(' ')}`,
  });
}

const hasFailed = (run: TeamRun): boolean => run.state === 'failed';
