// The script in the pages that the Python client writes (`run.report()`): reads the sources that the page holds and draws the report in its place.

import { assembleReport, type RunSources } from '../lib/report/read/assemble';
import { renderRunReport } from '../lib/report/render-run-report';

interface Page {
  getElementById(id: string): { textContent: string | null } | null;
  open(): void;
  write(text: string): void;
  close(): void;
}

const { document } = globalThis as unknown as { document: Page };
const sources = document.getElementById('slipway-sources')?.textContent ?? '{}';
const page = renderRunReport(assembleReport(JSON.parse(sources) as RunSources));
document.open();
document.write(page);
document.close();
