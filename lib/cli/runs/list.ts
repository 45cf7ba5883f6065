import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import { orList } from '../../core/config/issue';
import {
  hasEnded,
  type ListRequest,
  newestAttempt,
  RUN_STATES,
  type RunState,
  type StatusAnswer,
} from '../../core/contracts/control';
import { MAX_SEARCH } from '../../core/contracts/control-requests';
import { findDescriptor } from '../environment/environment';
import { EXIT, requireText, UsageError } from '../exit';
import { json, type Terminal } from '../terminal';
import { MAX_RUNS, readRuns, readStatus, withoutOk } from './control-client';
import type { EventOptions } from './logs/logs';
import { minute } from './run-text';

/** The runs of the team that are not over, each with its progress, expected end and cost. */
async function readActiveRuns(descriptor: Descriptor, wanted: Partial<ListRequest>): Promise<StatusAnswer[]> {
  const states = (wanted.states ?? RUN_STATES).filter((state) => !hasEnded({ state }));
  const runs = await readRuns(descriptor, { ...wanted, states, limit: MAX_RUNS });
  return Promise.all(runs.map(async ({ runId }) => withoutOk(await readStatus(descriptor, runId))));
}

const ACTIVE_COLUMNS = ['run', 'state', 'step', '%', 'done about (UTC)', 'loss', 'goodput', 'USD'];

const activeRow = (run: StatusAnswer): string[] => [
  run.runId,
  run.queuePosition === null ? run.state : `${run.state} (${run.queuePosition})`,
  String(run.step ?? '-'),
  run.progressPercent == null ? '-' : run.progressPercent.toFixed(1),
  run.etaAt ? minute(run.etaAt) : '-',
  run.loss?.toFixed(4) ?? '-',
  run.goodput === null ? '-' : `${(100 * run.goodput).toFixed(1)} %`,
  run.spendUsd?.toFixed(2) ?? '-',
];

export interface ListOptions extends EventOptions {
  active?: boolean;
  events?: boolean;
  /** `running,queued`. */
  state?: string;
  /** `key` or `key=value`; all of them must match. */
  tag?: string[];
  search?: string;
}

/** `slipway list`: shows the newest runs of the team, or the matching ones. */
export async function list(options: ListOptions, terminal: Terminal): Promise<number> {
  const states = statesOf(options.state);
  requireText('--search', options.search, MAX_SEARCH);
  const descriptor = await findDescriptor(options);
  const { tag: tags, search } = options;
  const wanted = { ...(states && { states }), ...(tags && { tags }), ...(search !== undefined && { search }) };
  const runs = await (options.active ? readActiveRuns : readRuns)(descriptor, wanted);
  if (options.active && runs.length === MAX_RUNS) terminal.err(`only the newest ${MAX_RUNS} runs are listed`);
  if (options.json) terminal.out(json({ runs }));
  else if (runs.length === 0 && options.active) terminal.out('no run is queued or running');
  else if (runs.length === 0) terminal.out(Object.keys(wanted).length === 0 ? 'no runs yet' : 'no matching runs');
  else terminal.out(options.active ? textTable(ACTIVE_COLUMNS, runs.map(activeRow)) : listText(runs));
  return EXIT.done;
}

function statesOf(text: string | undefined): RunState[] | undefined {
  const states = text?.split(',').map((state) => state.trim());
  const unknown = states?.find((state) => !RUN_STATES.includes(state as RunState));
  if (unknown === undefined) return states as RunState[] | undefined;
  throw new UsageError(
    `--state: must be of ${orList(RUN_STATES, 'and')}, got ${unknown}; join several with a comma, such as queued,running`,
  );
}

/** Tags and notes have columns only if a run has them. */
function listText(runs: readonly StatusAnswer[]): string {
  const more = [
    { name: 'tags', of: (run: StatusAnswer) => tagsText(run) },
    { name: 'note', of: (run: StatusAnswer) => run.note ?? '' },
  ].filter(({ of }) => runs.some((run) => of(run) !== ''));
  return textTable(
    [
      'run',
      'state',
      'since (UTC)',
      'instances',
      'attempt',
      'step',
      'committed',
      'USD',
      'reason',
      ...more.map(({ name }) => name),
    ],
    runs.map((run) => [...row(run), ...more.map(({ of }) => of(run))]),
  );
}

/** `project=llama matrix=sweep-1`. */
export const tagsText = ({ tags = {} }: Pick<StatusAnswer, 'tags'>): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');

const row = (run: StatusAnswer): string[] => [
  run.runId,
  run.queuePosition === null ? run.state : `${run.state} (${run.queuePosition})`,
  run.createdAt ? minute(run.createdAt) : '-',
  String(run.attempts.at(-1)?.instanceCount ?? '-'),
  String(newestAttempt(run)),
  String(run.step ?? '-'),
  String(run.committedStep ?? '-'),
  run.spendUsd?.toFixed(2) ?? '-',
  run.reason,
];
