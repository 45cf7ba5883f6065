import { remember } from '../../../lib/control/shared/bounded-map';
import { type EnvironmentSpec, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { hasErrors, type Issue, issue, orList } from '../../../lib/core/config/issue';
import { loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { applyOverrides } from '../../../lib/core/config/reading/overrides';
import { type Position, parseYaml } from '../../../lib/core/config/reading/yaml-file';
import { zodIssues } from '../../../lib/core/config/reading/zod-issues';
import { totalSteps } from '../../../lib/core/config/resolve-run';
import { canonicalCall } from '../core/call-faults';
import { KNOWN_CALLS } from '../services/known-calls';
import { quotaName } from '../services/limits';
import { checkFault } from './faults';
import { type CallEntry, type RunEntry, type ScenarioFile, scenarioSchema } from './schema';

/** A run of a scenario with the text of the run file that its start submits. */
export interface ScenarioRun extends Omit<RunEntry, 'file'> {
  file: RunEntry['file'];
  /** The run file after `set` and `trainsHours` were applied. */
  text: string;
  team: string;
}

/** A scenario after schema and defaults, with its environment and runs resolved. */
export interface Scenario extends Omit<ScenarioFile, 'environment' | 'runs' | 'until'> {
  environment: EnvironmentSpec;
  runs: ScenarioRun[];
  /** Seconds. */
  until: number;
  /** The scenario as read, from which a shrunk one can be written. */
  source: ScenarioFile;
}

/** A scenario file as read. */
export interface LoadedScenario {
  /** Absent when an issue is an error. */
  value?: Scenario;
  issues: Issue[];
  positionOf(path: readonly PropertyKey[]): Position | undefined;
}

const DEFAULT_UNTIL_SECONDS = 720 * 3600;
/** Seconds per step when neither scenario nor planner gives a value. */
export const DEFAULT_SECONDS_PER_STEP = 10;

/**
 * Loads a scenario.
 * @param read returns the text of a file that the scenario names, by its path as written; throws the caller's error for a missing file
 */
export function loadScenario(text: string, read: (path: string) => string): LoadedScenario {
  const { data, issues, positionOf } = parseYaml(text);
  if (issues.length > 0) return { issues, positionOf };
  return { ...readScenario(data, read), positionOf };
}

/** Like loadScenario, for data that was parsed already. */
export function readScenario(data: unknown, read: (path: string) => string): Omit<LoadedScenario, 'positionOf'> {
  const parsed = scenarioSchema.safeParse(data ?? {}, { reportInput: true });
  if (!parsed.success) return { issues: zodIssues(parsed.error, keysAt) };
  return resolveScenario(parsed.data, read);
}

/** Resolves a parsed scenario: reads the files that it names, and checks its cross-references. */
export function resolveScenario(
  file: ScenarioFile,
  read: (path: string) => string,
): Omit<LoadedScenario, 'positionOf'> {
  const environment = readEnvironment(file, read);
  const teams = Object.keys(environment.value?.teams ?? {});
  const runs = (file.runs ?? []).map((entry, i) => readRun(entry, i, teams, read));
  const issues = [
    ...environment.issues,
    ...runs.flatMap((run) => run.issues),
    ...(file.faults ?? []).flatMap((fault, i) => checkFault(fault, `faults[${i}]`)),
    ...nameIssues(file),
    ...(file.calls ?? []).flatMap((call, i) => callerIssues(call, `calls[${i}].team`, teams)),
  ];
  if (!environment.value || hasErrors(issues)) return { issues };
  const value = {
    ...file,
    environment: environment.value,
    runs: runs.map((run) => run.value),
    until: file.until ?? DEFAULT_UNTIL_SECONDS,
    source: file,
  };
  return { value, issues };
}

/** Only calls of the control function go through the alias of a team. */
function callerIssues({ team, do: what }: CallEntry, path: string, teams: readonly string[]): Issue[] {
  if (team === undefined) return [];
  if (isStackCall(what) || what === 'deploy') {
    const text = { must: `must not stand beside do: ${what}`, got: team, fix: 'leave it out' };
    return [issue('scenario/team', 'error', path, text)];
  }
  if (teams.length === 0 || teams.includes(team)) return [];
  const text = { must: 'must be a team of the environment', got: team, fix: `use ${orList(teams)}` };
  return [issue('scenario/team', 'error', path, text)];
}

function keysAt(path: readonly PropertyKey[]): string[] {
  let node: unknown = scenarioSchema;
  for (const segment of path) {
    const inner = unwrap(node) as { shape?: Record<string, unknown>; element?: unknown; valueType?: unknown };
    node = typeof segment === 'number' ? inner.element : (inner.shape?.[String(segment)] ?? inner.valueType);
  }
  return Object.keys((unwrap(node) as { shape?: object })?.shape ?? {});
}

function unwrap(node: unknown): unknown {
  let inner = node as { def?: { innerType?: unknown } } | undefined;
  while (inner?.def?.innerType) inner = inner.def.innerType as typeof inner;
  return inner;
}

const textOf = (file: RunEntry['file'], read: (path: string) => string): string =>
  typeof file === 'string' ? read(file) : JSON.stringify(file);

function readEnvironment(
  file: ScenarioFile,
  read: (path: string) => string,
): { value?: EnvironmentSpec; issues: Issue[] } {
  const loaded = loadEnvironment(textOf(file.environment, read));
  const found = loaded.issues.filter(({ level }) => level === 'error');
  if (!loaded.value) return { issues: found.map((one) => below('environment', one)) };
  const specs = resolveEnvironments(loaded.value);
  const [only, ...others] = specs;
  if (file.region === undefined && others.length === 0 && only) return { value: only, issues: [] };
  const value = specs.find(({ region }) => region === file.region);
  if (value) return { value, issues: [] };
  const fix = `write region: ${orList(specs.map(({ region }) => region))}`;
  const text = { must: 'must be a region of the environment', got: file.region, fix };
  return { issues: [issue('scenario/region', 'error', 'region', text)] };
}

/** An issue of a file inside the scenario, with the path from the scenario's root. */
const below = (at: string, found: Issue): Issue => ({
  ...found,
  path: found.path === '' ? at : `${at}.${found.path}`,
  message: `${at}: ${found.message}`,
});

function readRun(entry: RunEntry, index: number, teams: readonly string[], read: (path: string) => string) {
  const at = `runs[${index}]`;
  const team = entry.team ?? teams[0] ?? 'default';
  const issues: Issue[] = [];
  if (teams.length > 0 && !teams.includes(team)) {
    const text = { must: 'must be a team of the environment', got: team, fix: `use ${orList(teams)}` };
    issues.push(issue('scenario/team', 'error', `${at}.team`, text));
  }
  const { text, steps } = runText(entry, read);
  if (steps === undefined) {
    const lacks = {
      must: 'must be given for a run file without training.steps',
      fix: 'write how many hours its steps take',
    };
    issues.push(issue('scenario/steps', 'error', `${at}.trainsHours`, lacks));
  }
  return { value: { ...entry, text, team }, issues };
}

/** The text that a start submits; steps are undefined when nothing sets them. Control itself reports errors in the file. */
function runText(entry: RunEntry, read: (path: string) => string): { text: string; steps: number | undefined } {
  const original = textOf(entry.file, read);
  const { data, issues } = typeof entry.file === 'string' ? parseYaml(original) : { data: entry.file, issues: [] };
  if (issues.length > 0) return { text: original, steps: 0 };
  const overrides = Object.entries(entry.set ?? {}).map(([path, value]) =>
    value === null ? `${path}=` : `${path}=${JSON.stringify(value)}`,
  );
  const merged = applyOverrides(data, overrides);
  if (merged.issues.length > 0) return { text: original, steps: 0 };
  const loaded = loadRun(JSON.stringify(merged.data)).value;
  if (!loaded) return { text: JSON.stringify(merged.data), steps: 0 };
  const steps = stepsOf(entry, loaded.training);
  const reportsSteps =
    entry.trainsHours !== undefined && loaded.code.builtin === 'builtin' && loaded.kind === 'training';
  const final = reportsSteps ? withSteps(merged.data, steps) : merged.data;
  return { text: JSON.stringify(final), steps };
}

/** The spec of a start's text; undefined when control refuses it. The result is shared and must not be changed. */
export const specOf = remember((text) => loadRun(text).value);

/** The run file with this number of steps, whichever option it used for its length. */
function withSteps(data: unknown, steps: number | undefined): unknown {
  const { training, ...rest } = data as { training?: Record<string, unknown> };
  const { totalTokens: _totalTokens, ...others } = training ?? {};
  return { ...rest, training: { ...others, steps } };
}

/** Steps of the whole run: `trainsHours` takes precedence over the run file. */
export function stepsOf(
  entry: Pick<RunEntry, 'trainsHours' | 'secondsPerStep'>,
  training: Parameters<typeof totalSteps>[0],
): number | undefined {
  if (entry.trainsHours === undefined) return totalSteps(training);
  return Math.max(1, Math.round((entry.trainsHours * 3600) / (entry.secondsPerStep ?? DEFAULT_SECONDS_PER_STEP)));
}

/** Checks references to runs, quotas and calls. */
function nameIssues(file: ScenarioFile): Issue[] {
  const ids = (file.runs ?? []).map(({ id }) => id);
  const unknown = (path: string, id: string) =>
    ids.includes(id)
      ? []
      : [
          issue('scenario/run', 'error', path, {
            must: 'must be the id of a run of this scenario',
            got: id,
            fix: `use ${orList(ids)}`,
          }),
        ];
  const twice = ids.flatMap((id, i) =>
    ids.indexOf(id) === i
      ? []
      : [issue('scenario/run', 'error', `runs[${i}].id`, { must: 'must be unique', got: id, fix: 'rename it' })],
  );
  const faults = (file.faults ?? []).flatMap((fault, i) => [
    ...(['job', 'deleteJob', 'taken'] as const).flatMap((key) =>
      fault[key] === undefined ? [] : unknown(`faults[${i}].${key}`, fault[key].split('#')[0] ?? ''),
    ),
    ...(fault.stored === undefined ? [] : unknown(`faults[${i}].stored`, fault.stored)),
    ...(fault.call === undefined ? [] : callIssues(fault.call, `faults[${i}].call`)),
  ]);
  const quotas = Object.keys(file.limits ?? {}).flatMap((key) => (quotaName(key) ? [] : [quotaIssue(key)]));
  const rates = Object.keys(file.rates ?? {}).flatMap((key) => callIssues(rateName(key), `rates["${key}"]`));
  const calls = (file.calls ?? []).flatMap((call, i) => {
    if (!isStackCall(call.do)) return unknown(`calls[${i}].run`, call.run ?? '');
    const text = { must: `must not stand beside do: ${call.do}`, got: call.run ?? '', fix: 'leave it out' };
    return call.run === undefined ? [] : [issue('scenario/run', 'error', `calls[${i}].run`, text)];
  });
  return [...twice, ...calls, ...faults, ...quotas, ...rates];
}

/** Whether the call is for the stack and not for a run. */
export const isStackCall = (what: CallEntry['do']): what is StackCall =>
  what === 'delete-stack' || what === 'replace-key';
/** Calls that change the stack. */
export type StackCall = Extract<CallEntry['do'], 'delete-stack' | 'replace-key'>;

function callIssues(call: string, path: string): Issue[] {
  const name = canonicalCall(call);
  const isKnown = name.endsWith(':*')
    ? KNOWN_CALLS.some((k) => k.startsWith(name.slice(0, -1)))
    : KNOWN_CALLS.includes(name);
  if (isKnown) return [];
  const text = { must: 'must be a call that the functions make', got: call, fix: `use ${orList(KNOWN_CALLS)}` };
  return [issue('scenario/call', 'error', path, text)];
}

/** The service may be omitted in a rate: `CreateTrainingJob`. */
export const rateName = (key: string): string =>
  key.includes(':') ? canonicalCall(key) : (KNOWN_CALLS.find((call) => call.endsWith(`:${key}`)) ?? key);

const quotaIssue = (key: string): Issue =>
  issue('scenario/limit', 'error', `limits["${key}"]`, {
    must: 'must be the name or code of a quota',
    got: key,
    fix: 'write for example ml.p5.48xlarge for training job usage',
  });
