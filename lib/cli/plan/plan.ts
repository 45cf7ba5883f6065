import { performance } from 'node:perf_hooks';
import pc from 'picocolors';
import { planDocument, type SizePlan } from '../../core/admission';
import { acceleratorCount } from '../../core/catalog/instances/instances';
import type { Descriptor } from '../../core/config/descriptor';
import { cents } from '../../core/config/formats/numbers';
import { textTable } from '../../core/config/formats/plain-text';
import { type Issue, orList } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import { instanceGroupsOf } from '../../core/config/resolve-run';
import type { RunSpec } from '../../core/config/run-spec';
import { LIBRARIES } from '../../core/distribution';
import { nearestPublished } from '../../core/planner/run/nearest-published';
import { type NeuronLayout, type NeuronPlan, planNeuron } from '../../core/planner/run/neuron';
import { type PriceFacts, planRun, type RunPlan } from '../../core/planner/run/plan-run';
import { checkRun } from '../../core/rules';
import { searchRun } from '../../core/search/search-run';
import type { ScalingPoint } from '../../report/plan/plan-report';
import { renderPlanPage } from '../../report/render-plan-page';
import { type StandingCost, standingCost } from '../../shared/environment/standing-cost';
import { flag, modeOf } from '../command-line';
import { findDescriptor } from '../environment/environment';
import { environmentIn, requireEnvironment } from '../environment/environment-file';
import { EXIT, Refusal, UsageError } from '../exit';
import { withS3Config } from '../hub/fetched';
import { type CommonOptions, isDescriptorFile, readText, requireRun } from '../inputs';
import { savePage } from '../page-file';
import { json, type Terminal } from '../terminal';
import { memoryParts, planTable, planText, type Search, searchText } from './text/plan-text';

/** `slipway plan ENVIRONMENT.yaml`: shows the standing cost of each region, without jobs. Offline. */
async function planEnvironment(file: string, text: string, options: PlanOptions, terminal: Terminal) {
  const given = speedOption(options);
  if (given) throw new UsageError(`${flag(given)}: must be used with a run file, got ${file}; omit it`);
  const disk = requireEnvironment(file, text, options);
  const named = options.region === undefined ? disk.specs : [await environmentIn(disk, file, options)];
  const regions = named.map(standingCost);
  const usdPerMonth = regions.reduce((sum, region) => sum + region.usdPerMonth, 0);
  if (options.json) terminal.out(json({ usdPerMonth: cents(usdPerMonth), regions: regions.map(inCents) }));
  else {
    const total = regions.length > 1 ? [`all regions: ${usdPerMonth.toFixed(2)} USD a month`] : [];
    terminal.out([...regions.map(regionText), ...total].join('\n\n'));
  }
  return EXIT.done;
}

const inCents = (region: StandingCost): StandingCost => ({
  ...region,
  usdPerMonth: cents(region.usdPerMonth),
  items: region.items.map((item) => ({ ...item, usdPerMonth: cents(item.usdPerMonth) })),
});

function regionText({ region, items, usdPerMonth, notes }: StandingCost): string {
  const rows = [
    ...items.map((item) => [item.item, String(item.count), item.usdPerMonth.toFixed(2)]),
    ['standing cost', '', usdPerMonth.toFixed(2)],
  ];
  return [textTable([region, 'count', 'USD a month'], rows), ...notes.map((note) => `  ${note}`)].join('\n');
}

/** Region for prices when neither option nor environment gives one. */
const PRICE_REGION = 'us-west-2';

export interface PlanOptions extends CommonOptions {
  search?: boolean;
  searchLibraries?: string;
  html?: string;
  /** A date or a time. */
  by?: string;
}

/**
 * `slipway plan FILE`: shows whether a run fits, how fast it is and what it costs; for an environment file, its standing cost. Offline
 * unless `--environment` is a name.
 */
export async function plan(file: string, options: PlanOptions, terminal: Terminal): Promise<number> {
  const text = readText(file);
  if (isEnvironmentFile(text)) return planEnvironment(file, text, options, terminal);
  modeOf(options, { '': ['search', 'searchLibraries', 'html'], by: [] });
  const by = options.by === undefined ? undefined : (await import('./by-date.js')).deadlineOf(options.by, Date.now());
  const { run } = requireRun({ file, text }, await withS3Config({ file, text }, options));
  const { descriptor, ...facts } = await planFacts(options);
  const neuron = speedOption(options) ? undefined : planNeuron(run);
  if (neuron !== undefined) return printNeuronPlan(run.name, neuron, options, terminal);
  const result = planDocument(run, facts);
  if (Array.isArray(result)) throw new Refusal(result);
  if (descriptor && !isDescriptorFile(options.environment)) await printTrainingPlans(run, descriptor, terminal);
  if (by !== undefined) {
    const { planByDate } = await import('./by-date.js');
    return planByDate(run, result, { by, region: facts.region, descriptor, asJson: options.json }, terminal);
  }
  const search =
    options.search || options.searchLibraries !== undefined
      ? searchAround(run, facts, options.searchLibraries)
      : undefined;
  if (options.html) writePage(options.html, run, facts, { plan: result, search });
  const parts = [
    planText(run, result),
    ...(result.sizes ? [sizesText(result.sizes)] : []),
    ...(search ? [searchText(run, search)] : []),
  ];
  terminal.out(options.json ? json({ ...result, ...(search && { search }) }) : parts.join('\n\n'));
  return result.fits === 'oom' ? EXIT.refused : EXIT.done;
}

/** The first option for a search, a page or a date, which need a predicted speed. */
const speedOption = (options: PlanOptions): string | undefined =>
  (['search', 'searchLibraries', 'html', 'by'] as const).find((name) => options[name] !== undefined);

function printNeuronPlan(
  name: string,
  plan: NeuronPlan | Issue[],
  { json: asJson }: PlanOptions,
  terminal: Terminal,
): number {
  if (Array.isArray(plan)) throw new Refusal(plan);
  terminal.out(asJson ? json(plan) : neuronText(name, plan));
  return plan.fits === 'oom' ? EXIT.refused : EXIT.done;
}

/** Prints the state of the run's training plans to stderr, because stdout has the document. */
async function printTrainingPlans(run: RunSpec, descriptor: Descriptor, terminal: Terminal): Promise<void> {
  const { checkIssues, checkTrainingPlans } = await import('../environment/checks/account-checks.js');
  const { checks, issues } = await checkTrainingPlans(run, descriptor);
  for (const { verdict, detail } of checks) if (verdict === 'ok') terminal.err(`training plan: ${detail}`);
  for (const { level, message } of [...checkIssues(checks), ...issues]) terminal.err(`${level}: ${message}`);
}

/** Region and own rates of the environment, if one is given. */
async function planFacts(options: PlanOptions): Promise<PriceFacts & { descriptor?: Descriptor }> {
  const descriptor = options.environment === undefined ? undefined : await findDescriptor(options);
  return {
    region: options.region ?? descriptor?.region ?? PRICE_REGION,
    prices: descriptor?.prices,
    descriptor,
  };
}

/** Searches layouts similar to the run's; candidates are checked by the same rules as a launch. */
function searchAround(run: RunSpec, facts: PriceFacts, libraries: string | undefined): Search {
  const started = performance.now();
  const found = searchRun(run, facts, {
    libraries: librariesOf(run, libraries),
    check: (candidate) => checkRun(candidate, { region: facts.region }),
  });
  if (Array.isArray(found)) throw new Refusal(found);
  const seconds = Math.round(performance.now() - started) / 1000;
  return { seconds, ...found };
}

function librariesOf(run: RunSpec, given: string | undefined): string[] {
  const named = given?.split(',').map((name) => name.trim()) ?? [];
  const unknown = named.filter((name) => !LIBRARIES.includes(name));
  if (unknown.length > 0)
    throw new UsageError(
      `--search-libraries: must be of ${orList(LIBRARIES, 'and')}, got ${unknown.join(', ') || 'nothing'}; join several with a comma`,
    );
  return [...new Set([run.distribution.library, ...named])];
}

function writePage(
  file: string,
  run: RunSpec,
  facts: PriceFacts,
  { plan, search }: { plan: RunPlan; search?: Search },
): void {
  const page = renderPlanPage({
    name: run.name,
    library: run.distribution.library,
    spareInstances: run.compute.spareInstances,
    instances: instanceGroupsOf(run.compute).map((g) => ({ instanceType: g.instanceType, count: g.instanceCount })),
    region: facts.region,
    plan,
    scaling: scalingOf(run, facts),
    search,
    nearest: nearestPublished(plan.layout),
  });
  savePage(file, page);
}

const FITS = { fits: 'fits', tight: 'tight', oom: 'does not fit; not used' };
const rounded = (value: number | null, digits = 0) => (value === null ? '-' : value.toFixed(digits));

const sizesText = (sizes: readonly SizePlan[]): string =>
  textTable(
    ['instances', 'memory', 'GiB per GPU', 's per step', 'hours', 'USD on demand'],
    sizes.map((s) => [
      String(s.instanceCount),
      FITS[s.fits],
      rounded(s.memoryGiB, 1),
      rounded(s.stepSeconds, 2),
      rounded(s.hours, 1),
      rounded(s.usd),
    ]),
  );

const gib = (value: number) => value.toFixed(1);

/** Text for a plan on Trainium, on one screen. */
function neuronText(name: string, plan: NeuronPlan): string {
  const verdict = plan.fits === 'oom' ? 'does not fit' : 'not known whether it fits';
  const rows = [
    ['memory', `${verdict}: ${gib(plan.coreGiB)} GiB a NeuronCore, before what its runtime takes`],
    ...plan.layouts.flatMap((layout) => layoutRows(layout)),
    ['speed', 'not known'],
    ['cost', 'not known'],
  ];
  return [
    `${pc.bold(name)}: ${(plan.parameters / 1e9).toFixed(1)} B parameters on ${plan.cores} NeuronCores of ${plan.instanceType}`,
    planTable(rows),
    ...plan.assumptions.map((a) => pc.dim(`assumed: ${a}`)),
  ].join('\n');
}

const layoutRows = ({ tensor, shard, memoryGiB }: NeuronLayout): string[][] => [
  ['', `tensor ${tensor} x FSDP ${shard}: ${gib(memoryGiB.total)} GiB`],
  ['', `  ${memoryParts(memoryGiB)}`],
];

const NODES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** The same layout on 1 to 512 instances, with a proportional global batch. Sizes that its degrees do not divide are skipped. */
function scalingOf(run: RunSpec, facts: PriceFacts): ScalingPoint[] {
  if (run.compute.instanceGroups.length > 0) return [];
  return NODES.flatMap((nodes) => {
    const plan = planRun(onNodes(run, nodes), facts);
    if (Array.isArray(plan)) return [];
    const { tokensPerSecondPerGpu, interval80, fits } = plan;
    return { nodes, tokensPerSecondPerGpu, interval80: interval80.tokensPerSecondPerGpu, fits };
  });
}

function onNodes(run: RunSpec, nodes: number): RunSpec {
  const { globalBatchSize } = run.training;
  const share = nodes / run.compute.instanceCount;
  const gpus = nodes * acceleratorCount(run.compute.instanceType);
  const { parameters } = run.distribution;
  const { shard_degree: shard } = parameters;
  const sharded = typeof shard === 'number' ? { shard_degree: Math.min(shard, gpus) } : {};
  return {
    ...run,
    training: {
      ...run.training,
      ...(globalBatchSize && { globalBatchSize: Math.max(1, Math.round(globalBatchSize * share)) }),
    },
    compute: { ...run.compute, instanceCount: nodes },
    distribution: { ...run.distribution, parameters: { ...parameters, ...sharded } },
  };
}
