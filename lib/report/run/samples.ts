import { number } from '../page/format';
import { type Html, html } from '../page/html';
import type { Section } from '../page/page';
import { table } from '../page/table';
import type { ReportSample, RunReport } from './run-report';

/** Number of continuations per prompt: the newest, and earlier ones evenly distributed over the run. */
const SHOWN = 8;

/** The model's continuations of the prompts, in chronological order. Empty for a run that did not request samples. */
export function samplesSections({ samples = [] }: RunReport): Section[] {
  const numbers = [...new Set(samples.map((s) => s.number))].sort((a, b) => a - b);
  if (numbers.length === 0) return [];
  const prompts = numbers.map((one) =>
    promptPart(
      one,
      samples.filter((s) => s.number === one),
    ),
  );
  return [{ id: 'samples', title: 'Samples', body: html`${NOTE}${prompts}` }];
}

const NOTE = html`<p class="note">Continuations by greedy decoding. The prompts are beginnings of documents from the evaluation channel, or from the training data if the run has none.</p>`;

function promptPart(prompt: number, all: readonly ReportSample[]): Html {
  const [first] = all;
  const shown = spread(all);
  return html`${first?.prompt !== undefined && html`<p>Prompt ${prompt + 1}:</p><pre>${first.prompt}</pre>`}${table({
    caption:
      shown.length < all.length
        ? `Prompt ${prompt + 1}: ${shown.length} of ${number(all.length)} continuations`
        : `Prompt ${prompt + 1}: continuations`,
    layout: 'cards',
    columns: [{ head: 'Step', kind: 'num' }, { head: 'Attempt', kind: 'num' }, { head: 'Continuation' }],
    rows: [
      ...shown.map((s) => [number(s.step), number(s.attempt), textCell(s)]),
      ...(first?.expected === undefined ? [] : [['in the data', '', verbatim(first.expected)]]),
    ],
  })}`;
}

const textCell = ({ text, tokens }: ReportSample): Html =>
  text === undefined ? html`tokens ${tokens.join(' ')}` : verbatim(text);

/** Text with line breaks and spaces preserved. */
const verbatim = (text: string): Html => html`<span style="white-space:pre-wrap">${text}</span>`;

/** At most SHOWN entries, including the first and the last. */
function spread(all: readonly ReportSample[]): readonly ReportSample[] {
  if (all.length <= SHOWN) return all;
  const places = Array.from({ length: SHOWN }, (_, i) => Math.round((i * (all.length - 1)) / (SHOWN - 1)));
  return all.filter((_, i) => places.includes(i));
}
