import { duration, number, percent, roughUsd } from './page/format';
import { page } from './page/page';
import { type Html, html, type Tile, tiles, word } from './page/parts';
import { type PlanReport, TONES } from './plan/plan-report';
import { scalingPart, searchPart } from './plan/scaling';
import { advicePart, detailsPart, memoryPart, nearestPart, stepTimePart } from './plan/sections';

const VERDICTS = {
  fits: 'fits in memory',
  tight: 'tight: the allocator will be at its limit',
  oom: 'does not fit in memory',
} as const;

/** Name, verdict and key figures for the decision to launch. */
function planSummary(report: PlanReport): Html {
  const { plan } = report;
  const spares = report.spareInstances ? ` and ${report.spareInstances} spare` : '';
  const cluster = report.instances.map((i) => `${i.count} × ${i.instanceType}`).join(' + ') + spares;
  return html`<p class="sub">Slipway plan</p>
<h1>${report.name}</h1>
<p class="sub">${number(plan.parameters / 1e9, 1)} B parameters${activeText(plan)} · ${cluster} · ${plan.gpus} GPUs · ${report.library} · prices of ${report.region}</p>
<p>${word(VERDICTS[plan.fits], TONES[plan.fits])}</p>
${tiles(planTiles(report))}`;
}

function planTiles({ plan }: PlanReport): Tile[] {
  const { memoryGiB, interval80 } = plan;
  return [
    {
      name: 'Memory per GPU',
      value: `${number(memoryGiB.total, 1)} GiB`,
      note: `of ${number(memoryGiB.available, 1)} GiB`,
    },
    { name: 'Step', value: duration(plan.stepSeconds), note: range(interval80.stepSeconds.map(duration)) },
    {
      name: 'Tokens/s per GPU',
      value: number(plan.tokensPerSecondPerGpu),
      note: range(interval80.tokensPerSecondPerGpu.map((v) => number(v))),
    },
    { name: 'MFU', value: percent(plan.mfu), note: `${number(plan.modelTflopsPerGpu)} model TFLOPS per GPU` },
    timeTile(plan),
    costTile(plan),
  ];
}

const range = ([low = '', high = '']: readonly string[]): string => `80 %: ${low} – ${high}`;

function timeTile({ hours, wallHours, goodput }: PlanReport['plan']): Tile {
  if (hours === null || wallHours === null)
    return { name: 'Time', value: 'open', note: 'the run sets neither steps nor tokens' };
  return { name: 'Time', value: duration(wallHours * 3600), note: `at ${percent(goodput)} goodput` };
}

function costTile({ usd: cost, interval80 }: PlanReport['plan']): Tile {
  if (cost.onDemand === null)
    return {
      name: 'Cost',
      value: 'not known',
      note: cost.perHour === null ? cost.note : `${roughUsd(cost.perHour)} per hour`,
    };
  const others = [
    ...(cost.spot.usd === null ? [] : [`spot ${roughUsd(cost.spot.usd)}`]),
    ...(cost.trainingPlan.usd === null ? [] : [`training plan ${roughUsd(cost.trainingPlan.usd)}`]),
  ];
  return {
    name: 'Cost, on demand',
    value: roughUsd(cost.onDemand),
    note: [interval80.usd ? range(interval80.usd.map(roughUsd)) : cost.note, ...others].join('; '),
  };
}

/** Active parameters per token of a mixture of experts. */
const activeText = ({ parameters, activeParameters }: PlanReport['plan']): string =>
  activeParameters < parameters ? ` (${number(activeParameters / 1e9, 1)} B active)` : '';

/** One self-contained HTML page about a plan: what `slipway plan --html` writes. */
export function renderPlanPage(report: PlanReport): string {
  return page({
    title: `${report.name}: plan`,
    header: planSummary(report),
    sections: [
      { id: 'memory', title: 'Memory', body: memoryPart(report) },
      { id: 'advice', title: 'What to change first', body: advicePart(report) },
      { id: 'step-time', title: 'Step time', body: stepTimePart(report) },
      { id: 'scaling', title: 'Scaling', body: scalingPart(report) },
      { id: 'search', title: 'Other layouts', body: searchPart(report) },
      { id: 'nearest', title: 'Nearest published run', body: nearestPart(report) },
      { id: 'details', title: 'What was planned', body: detailsPart(report) },
    ],
    footer: html`Written by <code>slipway plan</code>. Predictions come from an analytic model; the 80 % interval reflects its error for published runs.`,
  });
}
