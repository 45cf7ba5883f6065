import { describe, expect, test } from 'vitest';
import { duration, number, percent, roughUsd } from '../../lib/report/page/format';
import type { PlanReport } from '../../lib/report/plan/plan-report';
import { renderPlanPage } from '../../lib/report/render-plan-page';
import { planReport, sectionOf, textOf } from './support';

const report = planReport();
const page = renderPlanPage(report);
const shown = (id: string, from = page) => textOf(sectionOf(from, id));
const changed = (change: (r: PlanReport) => void): string => {
  const copy = planReport();
  change(copy);
  return renderPlanPage(copy);
};

describe('the page', () => {
  test('asks nothing of the network and runs no script', () => {
    expect(page.match(/<(script|link|img|iframe|object|image)\b/gi)).toBeNull();
    expect(page.match(/\bsrc=|url\((?!#)|@import/g)).toBeNull();
  });

  test('says in words what is switched on, and of tensor parallelism only where there is some', () => {
    const row = (from?: string) => /Enabled (.*?) Checkpoint/.exec(shown('details', from))?.[1];
    const switched = (tensor: number) =>
      changed(({ plan }) =>
        Object.assign(plan.layout, { tensor, sequenceParallel: true, isOwnTrainer: true, noSync: true }),
      );
    expect(row(switched(1))).not.toContain('sequence parallelism');
    expect(row(switched(2))).toMatch(
      /^built-in trainer, sequence parallelism, .*unsharded gradients between micro-batches/,
    );
  });

  test('starts with the verdict and the figures that decide', () => {
    const header = textOf(page.slice(page.indexOf('<header>'), page.indexOf('</header>')));
    const { plan } = report;
    expect(header).toContain('16 × ml.p5.48xlarge · 128 GPUs · fsdp · prices of us-west-2');
    expect(header).toContain('fits in memory');
    expect(header).toContain(`Tokens/s per GPU ${number(plan.tokensPerSecondPerGpu)}`);
    expect(header).toContain(`MFU ${percent(plan.mfu)}`);
    expect(header).toContain(`Cost, on demand ${roughUsd(plan.usd.onDemand)}`);
  });

  test.each([
    ['tight', 'tight: the allocator will be at its limit'],
    ['oom', 'does not fit in memory'],
  ] as const)('a plan that is %s says so', (fits, words) => {
    expect(changed((r) => (r.plan.fits = fits))).toContain(words);
  });
});

describe('memory and step time', () => {
  test('every component that takes memory has a row with its own number', () => {
    const { total, available, ...components } = report.plan.memoryGiB;
    for (const value of Object.values(components).filter((v) => v > 0))
      expect(shown('memory')).toContain(` ${number(value, 2)} ${percent(value / available)}`);
    expect(shown('memory')).toContain(`all ${number(total, 2)} of ${number(available, 2)}`);
  });

  test('the bar is in proportion, and the line stands at what is available', () => {
    const drawn = sectionOf(
      changed((r) => {
        for (const key of Object.keys(r.plan.memoryGiB) as (keyof PlanReport['plan']['memoryGiB'])[])
          r.plan.memoryGiB[key] = 0;
        Object.assign(r.plan.memoryGiB, { parameters: 25, optimizer: 50, total: 75, available: 50 });
      }),
      'memory',
    );
    const bars = [...drawn.matchAll(/<rect x="([\d.]+)%" y="0" width="([\d.]+)%"/g)].map((m) => [
      Number(m[1]),
      Number(m[2]),
    ]);
    expect(bars[0]?.[0]).toBe(0);
    expect((bars[1]?.[1] ?? 0) / (bars[0]?.[1] ?? 1)).toBeCloseTo(2, 3);
    const line = Number(/<rect x="([\d.]+)%" y="-4"/.exec(drawn)?.[1]);
    expect(line).toBeCloseTo(2 * (bars[0]?.[1] ?? 0), 2);
  });

  test('every part of the step has its time and kind, the largest first', () => {
    const { total, ...parts } = report.plan.breakdown;
    const times = Object.values(parts)
      .filter((s) => s > 0)
      .sort((a, b) => b - a);
    const at = times.map((s) => shown('step-time').indexOf(` ${duration(s)} ${percent(s / total)}`));
    expect(at.every((position) => position > 0)).toBe(true);
    expect(at).toEqual([...at].sort((a, b) => a - b));
    expect(shown('step-time')).toContain('Data parallel communication');
  });
});

describe('scaling', () => {
  test('says what is kept from the smallest to the largest cluster', () => {
    expect(shown('scaling')).toMatch(/512 nodes keep [\d.]+ % of the speed per GPU that 1 node has/);
    expect(shown('scaling')).toContain('this run: 16 nodes');
  });

  test('marks sizes that do not fit', () => {
    expect(shown('scaling')).not.toContain('does not fit');
    const other = changed((r) => {
      const [first] = r.scaling ?? [];
      if (first) first.fits = 'oom';
    });
    expect(shown('scaling', other)).toContain('does not fit');
  });
});

describe('search', () => {
  test('shows the fastest first', () => {
    const [first] = report.search?.candidates ?? [];
    expect(shown('search')).toContain(`${number(first?.tokensPerSecondPerGpu)} ${roughUsd(first?.usd)} ${first?.fits}`);
    expect(shown('search')).toContain('Fastest layouts');
    expect(shown('search')).toContain('layouts considered in');
  });

  test('a run without an end is compared by the thousand steps', () => {
    const open = changed((r) => Object.assign(r.plan, { hours: null, wallHours: null }));
    expect(shown('search', open)).toContain('USD per 1,000 steps');
    expect(textOf(open)).toContain('the run sets neither steps nor tokens');
  });
});

describe('what was not computed', () => {
  test.each([
    ['scaling', 'The scaling curve was not computed'],
    ['search', 'No search was requested (--search)'],
    ['nearest', 'There is no published measurement of a comparable run'],
  ] as const)('%s says so', (id, text) => {
    const bare = changed((r) => Object.assign(r, { [id]: undefined }));
    expect(shown(id, bare)).toContain(text);
    expect(sectionOf(bare, id)).not.toContain('<svg');
  });

  test('a search that found nothing says so', () => {
    const none = changed((r) => (r.search = { considered: 1200, seconds: 0.1, candidates: [] }));
    expect(shown('search', none)).toContain('No layout fits under the constraints 1,200 layouts considered');
  });

  test('an unknown price names what is unknown', () => {
    const unknown = changed(
      (r) =>
        (r.plan.usd = { ...r.plan.usd, onDemand: null, perHour: null, basis: null, note: 'no price known for ml.x' }),
    );
    expect(textOf(unknown)).toContain('Cost not known no price known for ml.x');
  });
});

describe('text from files', () => {
  const hostile = `"><script>alert('x')</script>`;

  test('can never become markup', () => {
    const bad = changed((r) => {
      Object.assign(r, {
        name: hostile,
        library: hostile,
        region: hostile,
        instances: [{ instanceType: hostile, count: 1 }],
      });
      r.plan.assumptions = [hostile];
      r.plan.advice = r.plan.advice.map((a) => ({ ...a, change: hostile, why: hostile }));
      for (const c of r.search?.candidates ?? [])
        c.distribution = { library: hostile, parameters: { [hostile]: hostile } };
      Object.assign(r.nearest ?? {}, { name: hostile, source: hostile });
    });
    expect(bad.match(/<script/gi)).toBeNull();
    expect(bad.match(/&lt;script&gt;/g)?.length).toBeGreaterThan(10);
  });

  test.each([
    ['https://example.com/a?b=1&c=2', 'href="https://example.com/a?b=1&amp;c=2"'],
    ['javascript:alert(1)', undefined],
    ['https://x" onclick="y', undefined],
  ])('a source %s is a link only when it is an address', (source, link) => {
    const section = sectionOf(
      changed((r) => Object.assign(r.nearest ?? {}, { source })),
      'nearest',
    );
    if (link) expect(section).toContain(link);
    else expect(section).not.toContain('href=');
  });
});
