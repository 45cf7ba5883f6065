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

/** The cells of a run, by the head of their column. */
const CELLS = {
  run: ({ runId }) => runId,
  state: ({ state, queuePosition }) => (queuePosition === null ? state : `${state} (${queuePosition})`),
  'since (UTC)': ({ createdAt }) => (createdAt ? minute(createdAt) : '-'),
  instances: ({ attempts }) => String(attempts.at(-1)?.instanceCount ?? '-'),
  attempt: (run) => String(newestAttempt(run)),
  step: ({ step }) => String(step ?? '-'),
  committed: ({ committedStep }) => String(committedStep ?? '-'),
  '%': ({ progressPercent }) => progressPercent?.toFixed(1) ?? '-',
  'done about (UTC)': ({ etaAt }) => (etaAt ? minute(etaAt) : '-'),
  loss: ({ loss }) => loss?.toFixed(4) ?? '-',
  goodput: ({ goodput }) => (goodput === null ? '-' : `${(100 * goodput).toFixed(1)} %`),
  USD: ({ spendUsd }) => spendUsd?.toFixed(2) ?? '-',
  reason: ({ reason }) => reason,
  tags: (run) => tagsText(run),
  note: ({ note }) => note ?? '',
} satisfies Record<string, (run: StatusAnswer) => string>;

type Column = keyof typeof CELLS;
const ACTIVE: readonly Column[] = ['run', 'state', 'step', '%', 'done about (UTC)', 'loss', 'goodput', 'USD'];
const LISTED: readonly Column[] = [
  'run',
  'state',
  'since (UTC)',
  'instances',
  'attempt',
  'step',
  'committed',
  'USD',
  'reason',
];

/** Tags and notes have columns only if a run has them. */
function listText(runs: readonly StatusAnswer[], isActive = false): string {
  const more = (['tags', 'note'] as const).filter((column) => runs.some((run) => CELLS[column](run) !== ''));
  const columns = isActive ? ACTIVE : [...LISTED, ...more];
  return textTable(
    columns,
    runs.map((run) => columns.map((column) => CELLS[column](run))),
  );
}

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
  else terminal.out(listText(runs, options.active));
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

/** `project=llama matrix=sweep-1`. */
export const tagsText = ({ tags = {} }: Pick<StatusAnswer, 'tags'>): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');
