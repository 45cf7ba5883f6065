import { duration, number, usd } from '../../../lib/report/page/format';
import { page, type Section } from '../../../lib/report/page/page';
import { type Html, html, table, tiles, word } from '../../../lib/report/page/parts';
import { color } from '../../../lib/report/page/style';
import { lanesSection, loadSection } from './lanes';
import type { SimulationPage } from './simulation-page';

/** Maximum number of decisions on one page. */
const MAX_DECISIONS = 2000;

/** One self-contained HTML page about a simulation: queue, runs, attempts and decisions over time. */
export function renderSimulation(simulation: SimulationPage): string {
  return page({
    title: `${simulation.title}: simulation`,
    header: header(simulation),
    sections: [
      invariants(simulation),
      lanesSection(simulation),
      loadSection(simulation),
      runs(simulation),
      decisions(simulation),
    ],
    footer: html`Written by <code>npm run simulate</code>: the functions of the control plane on an in-memory AWS emulator with a virtual clock.`,
  });
}

function header({ title, seed, untilSeconds, runs: all, invariants: judged }: SimulationPage): Html {
  const broken = judged.filter(({ holds }) => !holds).length;
  const billed = all.reduce((sum, { billedUsd }) => sum + billedUsd, 0);
  return html`<h1>${title}</h1>${tiles([
    { name: 'Invariants', value: broken === 0 ? 'all hold' : `${broken} broken` },
    {
      name: 'Runs',
      value: String(all.length),
      note: `${all.filter(({ state }) => state === 'completed').length} completed`,
    },
    { name: 'Attempts', value: String(all.reduce((sum, { attempts }) => sum + attempts, 0)) },
    { name: 'Billed', value: usd(billed) },
    { name: 'Time', value: duration(untilSeconds), note: `seed ${seed}` },
  ])}`;
}

function invariants({ invariants: judged }: SimulationPage): Section {
  const rows = judged.map(({ name, holds, at, evidence = '' }) => [
    html`<code>${name}</code>`,
    word(holds ? 'holds' : 'broken', color(holds ? 'good' : 'bad')),
    at === undefined ? '' : duration(at),
    evidence,
  ]);
  const columns = [
    { head: 'Invariant', kind: 'fixed' as const },
    { head: 'Verdict' },
    { head: 'At' },
    { head: 'Evidence', kind: 'long' as const },
  ];
  return {
    id: 'invariants',
    title: 'Invariants',
    body: table({ caption: 'Invariants and violations', layout: 'cards', columns, rows }),
  };
}

function runs({ runs: all }: SimulationPage): Section {
  const body = table({
    caption: 'How each run ended',
    layout: 'cards',
    columns: [
      { head: 'Run', kind: 'fixed' },
      { head: 'Team' },
      { head: 'State' },
      { head: 'Attempts', kind: 'num' },
      { head: 'Kept steps', kind: 'num' },
      { head: 'Lost steps', kind: 'num' },
      { head: 'Billed', kind: 'num' },
      { head: 'Booked', kind: 'num' },
      { head: 'Reason', kind: 'long' },
    ],
    rows: all.map((run) => [
      html`<code>${run.id}</code>`,
      run.team,
      run.state,
      number(run.attempts),
      number(run.keptSteps),
      number(run.lostSteps),
      usd(run.billedUsd),
      usd(run.bookedUsd),
      run.reason,
    ]),
  });
  return { id: 'results', title: 'Results', body };
}

function decisions({ runs: all }: SimulationPage): Section {
  const lines = all
    .flatMap(({ id, decisions: made, notices }) => [
      ...made.map((line) => ({ ...line, id })),
      ...notices.map(({ at, text }) => ({ at, what: 'notice', text, id })),
    ])
    .sort((a, b) => a.at - b.at);
  const body = table({
    caption: lines.length > MAX_DECISIONS ? `The first ${MAX_DECISIONS} of ${lines.length}` : 'Decisions and notices',
    layout: 'cards',
    columns: [
      { head: 'At', kind: 'fixed' },
      { head: 'Run', kind: 'fixed' },
      { head: 'What', kind: 'fixed' },
      { head: 'Text', kind: 'long' },
    ],
    rows: lines.slice(0, MAX_DECISIONS).map(({ at, id, what, text }) => [duration(at), id, what, text]),
  });
  return { id: 'decisions', title: 'Decisions', body };
}
