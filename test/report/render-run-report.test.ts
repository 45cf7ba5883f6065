import { describe, expect, test } from 'vitest';
import { renderRunReport } from '../../lib/report/render-run-report';
import type { RunReport } from '../../lib/report/run/run-report';
import { bareReport, runReport, sectionOf, textOf } from './support';

const page = renderRunReport(runReport());
const shown = (id: string, from = page) => textOf(sectionOf(from, id));

describe('the page', () => {
  test('asks nothing of the network and runs no script', () => {
    expect(page.match(/<(script|link|img|iframe|object|image)\b/gi)).toBeNull();
    // A link to the console is followed by people only.
    expect(
      page.match(/\bsrc="(?!#)|\bhref="(?!#|https:\/\/[\w-]+\.console\.aws\.amazon\.com\/)|url\((?!#)|@import/g),
    ).toBeNull();
    expect(page.match(/content="default-src[^"]*"/)?.[0]).toBe(
      `content="default-src 'none'; style-src 'unsafe-inline'"`,
    );
  });

  test('is the same for the same numbers, whatever was drawn before', () => {
    const again = renderRunReport(runReport()).split('\n');
    expect(again.filter((line, i) => line !== page.split('\n')[i])).toEqual([]);
  });

  test('has no id twice', () => {
    const ids = [...page.matchAll(/\bid="([^"]+)"/g)].map((m) => m[1]);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
  });

  test('describes every drawing in words, and names every table', () => {
    const drawings = [...page.matchAll(/<svg[^>]*>/g)].map((m) => m[0]);
    expect(drawings.length).toBeGreaterThan(6);
    for (const drawing of drawings) expect(drawing).toMatch(/role="img".*aria-(label|labelledby)="[^"]+"/);
    expect(page.match(/<title/g)?.length).toBeGreaterThan(drawings.length);
    expect(page.match(/<caption>/g)?.length).toBe(page.match(/<table/g)?.length);
  });

  test('links to every section that it has', () => {
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map((m) => m[1]);
    expect(links).toEqual([...page.matchAll(/<section id="([^"]+)"/g)].map((m) => m[1]));
  });
});

describe('what the sections say', () => {
  test.each([
    [
      'attempts',
      'attempt 2 Stopped 1,401–2,893 2026-11-18 11:23:08 15 min 2 h 32 min no progress for 1200 s after step 2893',
    ],
    ['loss', 'attempt 1 attempt 2 attempt 3 last step of an attempt that did not finish committed checkpoint'],
    ['throughput', 'Median 6,483 tokens/s per GPU, model FLOPs utilisation 38.4 %, over 415 reported steps.'],
    ['goodput', 'lost steps steps after the last checkpoint of a failed attempt 9 min 27 s 2 %'],
    ['checkpoints', '4,000 3 2026-11-18 15:51:54 complete 89.8 GiB 130 128 2.99 s 42.7 s'],
    ['checkpoints', '3,400 3 2026-11-18 15:00:52 removed – – –'],
    ['cost', '2 16 × ml.p5.48xlarge 2 h 32 min $2,566.16'],
    ['cost', 'all $6,509.64'],
    [
      'efa',
      'attempt 2 EFA without GPUDirect traffic went over EFA through host memory – 32 of 32 efa 1.17.3 2.1.0 2.27.7',
    ],
    ['decisions', '2026-11-18 08:02:11 run-intended start asked by team nlp'],
  ])('%s: %s', (id, text) => {
    expect(shown(id)).toContain(text);
  });

  test('every figure of the ledger is the one in the report', () => {
    const report = runReport();
    report.ledger = { seconds: { ...zeros(report), step: 75, lost: 25 }, totalSeconds: 100, goodput: 0.75 };
    expect(shown('goodput', renderRunReport(report))).toMatch(
      /steps that were kept.* 1 min 15 s 75 %.*lost.* 25 s 25 %/,
    );
  });

  test('each attempt links to its job in the console, in the partition of its region', () => {
    const to = (region: string) => renderRunReport({ ...runReport(), region });
    expect(to('us-west-2')).toContain(
      'href="https://us-west-2.console.aws.amazon.com/sagemaker/home?region=us-west-2#/jobs/',
    );
    expect(to('cn-north-1')).toContain(
      'href="https://cn-north-1.console.amazonaws.cn/sagemaker/home?region=cn-north-1#/jobs/',
    );
  });

  test('the loss is drawn for every attempt, with a line for every committed step', () => {
    const drawn = sectionOf(page, 'loss');
    for (const n of [1, 2, 3]) expect(drawn).toContain(`stroke="var(--c${n})"`);
    const wide = drawn.slice(drawn.indexOf('<svg class="wide"'), drawn.indexOf('</svg>'));
    expect(wide.match(/stroke-dasharray/g)).toHaveLength(20);
  });

  test('thirty thousand steps are thinned to what can be seen', () => {
    const many = Array.from({ length: 30_000 }, (_, i) => ({
      attempt: 1 + Math.floor(i / 15_000),
      at: new Date(Date.UTC(2026, 10, 1) + i * 5000).toISOString(),
      step: i + 1,
      loss: 2 + 8 / (1 + i / 100),
      tokensPerSecondPerGpu: 6000 + (i % 7),
    }));
    const large = renderRunReport({ ...runReport(), steps: many });
    expect(large.length).toBeLessThan(500_000);
    expect(shown('throughput', large)).toContain('over 30,000 reported steps');
  });

  test('draws the load of experts of a mixture, and says which layer is fullest at the end', () => {
    const report = runReport();
    report.steps = report.steps?.map((s, i) => ({ ...s, expertLoad: { most: 3 - i / 1000, layer: 7, mean: 1.25 } }));
    const drawn = renderRunReport(report);
    expect(shown('experts', drawn)).toMatch(
      /most unbalanced layer mean over layers .* 1.25 as the mean.*layer with experts 8/,
    );
    expect(page).not.toContain('id="experts"');
    // Steps that were made again after a restart are drawn once.
    const again = report.steps?.slice(-20).map((s) => ({ ...s, expertLoad: { most: 9, layer: 0, mean: 1.25 } }));
    const before = { ...report, steps: [...(again ?? []), ...(report.steps ?? [])] };
    expect(sectionOf(renderRunReport(before), 'experts')).toBe(sectionOf(drawn, 'experts'));
  });

  test('shows how the model continued its prompts, the first and the last time among others', () => {
    const sample = { attempt: 1, at: '2026-11-18T08:30:00.000Z', number: 0, tokens: [5, 6], prompt: 'to <be>' };
    const steps = Array.from({ length: 30 }, (_, i) => ({
      ...sample,
      step: 100 * i,
      text: ` at ${i}`,
      expected: ' or',
    }));
    const unreported = { attempt: 1, at: sample.at, number: 1, step: 100, tokens: [7, 8] };
    const text = shown('samples', renderRunReport({ ...runReport(), samples: [...steps, unreported] }));
    expect(text).toContain('Prompt 1: to &lt;be&gt; Prompt 1: 8 of 30 continuations');
    expect(text).toMatch(/ 0 1 at 0 400 1 at 4 .* 2,900 1 at 29 in the data or/);
    expect(text).toContain('100 1 tokens 7 8');
    expect(page).not.toContain('id="samples"');
  });

  test('sets planned and measured memory beside each other, where the plan has room', () => {
    const speed = { key: 'k', planned: 4000, interval80: [3000, 5000] as const, measured: 4100 };
    const memory = { state: 10.04, rest: 40, measured: 52.25 };
    expect(shown('throughput', renderRunReport({ ...runReport(), speed: { ...speed, memory } }))).toContain(
      'faster than planned. Planned 50 GiB of GPU memory, measured 52.3.',
    );
    const without = shown('throughput', renderRunReport({ ...runReport(), speed }));
    expect(without).toContain('faster than planned.');
    expect(without).not.toContain('GPU memory');
  });

  test('a run on CPU instances speaks of processes', () => {
    const report = runReport();
    for (const attempt of report.attempts) attempt.instances = [{ instanceType: 'ml.c5.xlarge', count: 2 }];
    expect(shown('throughput', renderRunReport(report))).toContain('tokens/s per process');
  });
});

describe('what is not known', () => {
  const sections: [string, string][] = [
    ['attempts', 'There is no attempt yet'],
    ['loss', 'Losses were not read'],
    ['throughput', 'Throughput was not read'],
    ['goodput', 'The timeline was not read'],
    ['checkpoints', 'Checkpoints were not read'],
    ['cost', 'The jobs were not read'],
    ['efa', 'The verdict was not read'],
    ['decisions', 'The timeline was not read'],
  ];

  const bare = renderRunReport(bareReport());

  test.each(sections)('%s says so and shows no number', (id, text) => {
    const said = shown(id, bare);
    expect(said).toContain(text);
    expect(said.replace(/^.*?<h2/, '')).not.toMatch(/\d/);
    expect(sectionOf(bare, id)).not.toContain('<svg');
  });

  test('the reason stands beside it', () => {
    const report = { ...bareReport(), missing: { steps: 'logs:FilterLogEvents is not permitted' } };
    expect(shown('loss', renderRunReport(report))).toContain(
      'Losses were not read: logs:FilterLogEvents is not permitted',
    );
  });

  test('read and empty is something else than not read', () => {
    const report: RunReport = { ...bareReport(), steps: [], checkpoints: [], efa: [], timeline: [] };
    const empty = renderRunReport(report);
    expect(shown('loss', empty)).toContain('No step has reported a loss');
    expect(shown('checkpoints', empty)).toContain('No committed checkpoint was found');
    expect(shown('efa', empty)).toContain('No attempt has reported a verdict');
  });

  test('hosts with a slower network are counted and named', () => {
    const efa = [
      { attempt: 1, verdict: 'sockets', evidence: [], hosts: { sockets: 1, efa: 62 }, slowerHosts: ['algo-7'] },
    ];
    expect(shown('efa', renderRunReport({ ...runReport(), efa }))).toContain('1 sockets, 62 efa (slower: algo-7)');
  });

  test('says when NCCL used fewer than half of the EFA interfaces', () => {
    const interfaces = (used: number) =>
      shown(
        'efa',
        renderRunReport({
          ...runReport(),
          efa: [{ attempt: 1, verdict: 'efa+gdr', evidence: [], interfaces: used, expectedInterfaces: 32 }],
        }),
      );
    expect(interfaces(1)).toContain('1 of 32, fewer than half');
    expect(interfaces(16)).not.toContain('fewer than half');
  });

  test('a price that no source has leaves the sum open', () => {
    const report = runReport();
    const instances = [{ instanceType: 'ml.trn3.48xlarge', count: 4 }];
    report.cost = {
      prices: [{ instanceType: 'ml.trn3.48xlarge', usdPerHour: null, note: 'no source has a price' }],
      attempts: [{ number: 1, instances, seconds: 3600, usd: null }],
      totalUsd: null,
    };
    expect(shown('cost', renderRunReport(report))).toMatch(
      /1 4 × ml.trn3.48xlarge 1 h –.*all not known.*no source has a price/,
    );
  });

  test('steps without loss or throughput leave only those drawings out', () => {
    const report = { ...runReport(), steps: [{ attempt: 1, at: '2026-11-18T09:10:00.000Z', step: 1, loss: 3.5 }] };
    const few = renderRunReport(report);
    expect(sectionOf(few, 'loss')).toContain('<svg');
    expect(shown('throughput', few)).toContain('No step has reported its throughput');
  });

  test('an attempt that is still running is drawn up to the time of reading', () => {
    const report = runReport();
    const last = report.attempts[2];
    if (last)
      Object.assign(last, { endedAt: null, status: 'InProgress', secondaryStatus: 'Training', billableSeconds: null });
    expect(shown('attempts', renderRunReport(report))).toContain(
      'InProgress Training 2,801–4,000 2026-11-18 14:05:22 10 min 1 h 52 min',
    );
  });
});

describe('text of users', () => {
  const hostile = `"><script>alert('x')</script><svg onload=x>`;

  test('can never become markup, wherever it stands', () => {
    const report = runReport();
    Object.assign(report, {
      runId: hostile,
      team: hostile,
      environment: hostile,
      region: hostile,
      state: hostile,
      reason: hostile,
    });
    for (const a of report.attempts)
      Object.assign(a, { trainingJobName: hostile, status: hostile, secondaryStatus: `${hostile}2`, reason: hostile });
    for (const e of report.timeline ?? [])
      Object.assign(e, { what: hostile, text: hostile, evidence: { [hostile]: hostile } });
    for (const e of report.efa ?? [])
      Object.assign(e, {
        verdict: hostile,
        provider: hostile,
        plugin: hostile,
        libfabric: hostile,
        nccl: hostile,
        hosts: { [hostile]: 2 },
        slowerHosts: [hostile],
        evidence: [hostile],
      });
    for (const p of report.cost?.prices ?? []) Object.assign(p, { instanceType: hostile, note: hostile });
    for (const a of report.cost?.attempts ?? []) a.instances = [{ instanceType: hostile, count: 1 }];
    report.missing = { checkpoints: hostile, cost: hostile };
    const page = renderRunReport(report);
    expect(page.match(/<script|<svg onload/gi)).toBeNull();
    expect(page.match(/&lt;script&gt;alert\(&#39;x&#39;\)&lt;\/script&gt;/g)?.length).toBeGreaterThan(50);
  });
});

const zeros = (report: RunReport) => {
  if (!report.ledger) throw new Error('the fixture has a ledger');
  return Object.fromEntries(Object.keys(report.ledger.seconds).map((c) => [c, 0])) as typeof report.ledger.seconds;
};

test('GPUs are shown by host, the least busy first, and not at all where no host told of them', () => {
  const host = (name: string, utilizationPercent: number | null) => ({
    ...{ host: name, looks: 3, utilizationPercent, memoryGiB: 71.25, totalGiB: 79.6 },
  });
  const overTime = [1, 2, 3].map((n) => ({
    attempt: 1,
    at: `2026-11-18T10:0${n}:00.000Z`,
    utilizationPercent: 90 + n,
  }));
  const hosts = [host('algo-1', 95), host('algo-2', null), host('algo-3', 40)];
  const written = renderRunReport({ ...runReport(), gpus: { hosts, overTime } });
  expect(shown('gpus', written)).toContain(
    'algo-3 40 % 71.3 of 79.6 GiB algo-1 95 % 71.3 of 79.6 GiB algo-2 – 71.3 of 79.6 GiB',
  );
  expect(page).not.toContain('id="gpus"');
  const many = Array.from({ length: 128 }, (_, i) => host(`algo-${i + 1}`, 100 - i / 10));
  const large = shown('gpus', renderRunReport({ ...runReport(), gpus: { hosts: many, overTime: [] } }));
  expect(large).toContain('The 16 least busy of 128 hosts.');
  expect(large).toContain('No GPU has reported its utilisation.');
  expect(large).not.toContain('algo-1 ');
});

test('a run that failed shows its first error and what to do before anything else', () => {
  const failure = {
    ...{ attempt: 2, host: 'algo-2', lines: ['Traceback (most recent call last):', 'ValueError: <b>bad</b>'] },
    ...{ runbook: 'docs/runbooks.md#user-code', commands: ['slipway logs r --environment e/t --errors'] },
  };
  const text = renderRunReport({ ...bareReport(), failure });
  expect(text.indexOf('id="failure"')).toBeLessThan(text.indexOf('id="attempts"'));
  expect(shown('failure', text)).toContain('Attempt 2, host algo-2');
  expect(sectionOf(text, 'failure')).toContain('ValueError: &lt;b&gt;bad&lt;/b&gt;');
  expect(shown('failure', text)).toContain('slipway logs r --environment e/t --errors');
  expect(renderRunReport({ ...bareReport(), failure: { ...failure, lines: [], host: '' } })).toContain(
    'no line of the log',
  );
  expect(page).not.toContain('id="failure"');
});

test('what was launched is on the page, first what people ask for', () => {
  const spec = {
    model: { preset: 'llama3-8b' },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
    code: { arguments: {} },
  };
  const text = renderRunReport({ ...bareReport(), launch: { note: 'half the rate', tags: { project: 'a' }, spec } });
  for (const part of ['half the rate', 'llama3-8b', 'ml.p5.48xlarge', 'Tag project', 'instanceCount: 4'])
    expect(shown('launch', text)).toContain(part);
  expect(shown('launch', text)).not.toContain('Learning rate');
});
