import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { PlanReport } from '../../lib/report/plan/plan-report';
import type { RunReport } from '../../lib/report/run/run-report';

const FIXTURES = path.join(__dirname, '..', 'fixtures', 'report');

const read = (name: string): unknown => JSON.parse(readFileSync(path.join(FIXTURES, name), 'utf8'));

/** Fresh copies, so that a test may change them. */
export const runReport = (): RunReport => read('run-report.json') as RunReport;
export const planReport = (): PlanReport => read('plan-report.json') as PlanReport;

/** A run of which nothing but its id and state is known. */
export const bareReport = (): RunReport => ({
  runId: 'bare-261121120000',
  name: 'bare',
  team: 'default',
  environment: 'lab',
  region: 'us-east-1',
  state: 'queued',
  reason: '',
  readAt: '2026-11-21T12:00:05.000Z',
  step: null,
  committedStep: null,
  goodput: null,
  spendUsd: null,
  attempts: [],
  missing: {},
});

/** The markup of one section of a page. */
export function sectionOf(page: string, id: string): string {
  const from = page.indexOf(`<section id="${id}"`);
  if (from < 0) throw new Error(`the page has no section ${id}`);
  return page.slice(from, page.indexOf('</section>', from));
}

/** What a reader sees of some markup: no tags, no drawings, one space between words. */
export const textOf = (markup: string): string =>
  markup
    .replace(/<style>[\s\S]*?<\/style>/g, ' ')
    .replace(/<svg[\s\S]*?<\/svg>/g, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim();
