import { groupBy, inScope, isCovered, isStrict, mean, median, type Scored } from './planner-score';

/** One line of the accuracy table: a figure, its target, and whether it is met. */
export interface Metric {
  name: string;
  value: string;
  must: string;
  aim: string;
  met: boolean;
}

const ape = (s: Scored) => Math.abs(Math.expm1(s.speedError ?? 0));
const percent = (x: number, digits = 1) => `${(100 * x).toFixed(digits)} %`;
const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

const atMost = (name: string, x: number, must: number, aim: number): Metric => ({
  name,
  value: percent(x),
  must: `<= ${percent(must)}`,
  aim: `<= ${percent(aim)}`,
  met: x <= must,
});
const atLeast = (name: string, x: number, must: number, aim: number): Metric => ({
  name,
  value: percent(x),
  must: `>= ${percent(must)}`,
  aim: `>= ${percent(aim)}`,
  met: x >= must,
});

/** Network as slow as on p4d: 400 Gb/s a node. */
const isP4dLike = (s: Scored) =>
  s.row.hardware.network_gbps === 400 && s.row.hardware.gpu.startsWith('A100') && (s.row.hardware.nodes ?? 1) > 1;

/** Speed figures over the strict rows. */
export function speedMetrics(all: readonly Scored[]): Metric[] {
  const strict = all.filter((s) => isStrict(s.row) && s.speedError !== undefined);
  const bySource = [...groupBy(strict, (s) => s.row.source ?? '').values()];
  const unknown = strict.filter((s) => s.row.use.includes('throughput_ac_unknown'));
  const p4d = strict.filter(isP4dLike);
  const order = orderOf(strict);
  return [
    atMost('throughput: median error, pooled', median(strict.map(ape)), 0.055, 0.045),
    atMost('throughput: mean error, average over sources', mean(bySource.map((g) => mean(g.map(ape)))), 0.12, 0.09),
    atLeast(
      'throughput: rows within 20 %',
      share(strict.filter((s) => ape(s) <= 0.2).length, strict.length),
      0.88,
      0.94,
    ),
    ...generationBias(strict),
    atMost('recompute not stated (NVIDIA): mean error', mean(unknown.map(ape)), 0.08, 0.06),
    atMost('network as on p4d: mean error', mean(p4d.map(ape)), 0.12, 0.08),
    atLeast('order of layouts of one model, more than 5 % apart', order.right, 0.92, 0.95),
    atMost('regret of the layout predicted best', order.regret, 0.02, 0.01),
    ...intervalMetrics(strict),
  ];
}

function generationBias(strict: readonly Scored[]): Metric[] {
  return [...groupBy(strict, (s) => s.row.hardware.gpu.slice(0, 4).replace('-', ''))].map(([generation, group]) => {
    const bias = Math.expm1(median(group.map((s) => s.speedError ?? 0)));
    return {
      name: `signed median, ${generation} (${group.length} rows)`,
      value: percent(bias),
      must: '+-4.0 %',
      aim: '+-2.0 %',
      met: Math.abs(bias) <= 0.04,
    };
  });
}

/** Pairs of one series at one sequence length and GPU count whose measured speeds differ by more than 5 %. */
function orderOf(strict: readonly Scored[]): { right: number; regret: number } {
  let right = 0;
  let pairs = 0;
  const regrets: number[] = [];
  const key = (s: Scored) =>
    [
      s.row.eval_group,
      s.row.model.name,
      s.row.model.seq_len,
      s.row.hardware.num_gpus,
      s.row.precision,
      s.row.hardware.gpu,
    ].join('|');
  for (const group of groupBy(strict, key).values()) {
    if (group.length < 2) continue;
    for (const [i, a] of group.entries()) {
      for (const b of group.slice(i + 1)) {
        const measured = Math.log(speedOf(a) / speedOf(b));
        if (Math.abs(measured) <= Math.log(1.05)) continue;
        pairs += 1;
        if (measured * Math.log(predictedOf(a) / predictedOf(b)) > 0) right += 1;
      }
    }
    const chosen = group.reduce((best, s) => (predictedOf(s) > predictedOf(best) ? s : best));
    regrets.push(1 - speedOf(chosen) / Math.max(...group.map(speedOf)));
  }
  return { right: share(right, pairs), regret: mean(regrets) };
}

const speedOf = (s: Scored) => s.row.result.tokens_per_s_per_gpu ?? 0;
const predictedOf = (s: Scored) => s.prediction.tokensPerSecondPerGpu ?? 0;

function intervalMetrics(strict: readonly Scored[]): Metric[] {
  const withIn = strict.filter((s) => s.prediction.interval80);
  const covered = withIn.filter(isCovered);
  const width = median(
    withIn.map((s) => {
      const [low, high] = s.prediction.interval80 ?? [0, 0];
      return (high - low) / predictedOf(s);
    }),
  );
  const coverage = share(covered.length, withIn.length);
  return [
    {
      name: '80 % interval: covers',
      value: percent(coverage),
      must: '70-92 %',
      aim: '78-85 %',
      met: coverage >= 0.7 && coverage <= 0.92,
    },
    atMost('80 % interval: median width', width, 0.35, 0.25),
  ];
}

/** Memory and out-of-memory figures. */
export function memoryMetrics(all: readonly Scored[]): Metric[] {
  const measured = all.filter((s) => s.memoryError !== undefined);
  const apes = (group: readonly Scored[]) => mean(group.map((s) => Math.abs(Math.expm1(s.memoryError ?? 0))));
  const bySource = [...groupBy(measured, (s) => s.row.source ?? '').values()];
  const labelled = all.filter((s) => s.row.use.includes('fit') && s.prediction.fits !== null && inScope(s.row));
  const named = (pattern: RegExp) => labelled.filter((s) => pattern.test(s.row.source ?? ''));
  const oomRows = named(/Aleph|BLOOM/).filter((s) => s.row.result.oom === true);
  const okRows = named(/Aleph|BLOOM/).filter((s) => s.row.result.oom === false);
  const near = named(/llm-foundry/);
  const aws = named(/AWS SMP|hyperpod-recipes/);
  const oom = (list: readonly Scored[]) => share(list.filter((s) => s.prediction.fits === 'oom').length, list.length);
  return [
    atMost('peak memory: mean error, average over sources', mean(bySource.map(apes)), 0.08, 0.05),
    atMost(
      'peak memory: rows more than 10 % too low',
      share(measured.filter((s) => Math.expm1(s.memoryError ?? 0) < -0.1).length, measured.length),
      0.05,
      0,
    ),
    atLeast('out of memory: recall', oom(oomRows), 0.97, 0.98),
    atMost('out of memory: false alarms', oom(okRows), 0.05, 0.03),
    atMost('out of memory: false alarms near the limit (llm-foundry)', oom(near), 0.05, 0.02),
    atLeast('AWS reference configurations that fit', 1 - oom(aws), 1, 1),
  ];
}
