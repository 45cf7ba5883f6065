import type { Evidence, TimelineEvent } from './action';
import type { EpochMs, Notice, RunRecord } from './record';

/** Creates a timeline event. */
export const event = (at: EpochMs, what: string, text: string, evidence: Evidence = {}): TimelineEvent => ({
  at,
  what,
  text,
  evidence,
});

/** Content of a notice: the alert, its subject, and the runbook for it. */
export interface NoticeParts {
  alert: string;
  about: string;
  text: string;
  runbook: string;
}

/** A notice has one or two sentences; the rest is in the timeline. */
const MAX_TEXT = 2000;

/** An unknown state that lasts is reported again each day. */
export const dayOf = (since: EpochMs, now: EpochMs): number => Math.max(0, Math.floor((now - since) / 86_400_000));

/** A notice for people. Its id consists of the alert and its subject, so that it is sent only once. */
export const notice = (record: RunRecord, at: EpochMs, { alert, about, text, runbook }: NoticeParts): Notice => ({
  id: `${alert}/${about}`,
  alert,
  text: `${record.runId}: ${text}`.slice(0, MAX_TEXT),
  runbook,
  at,
});

/**
 * Address of a section of a page, or of the page: on the documentation site of the company, or in the package.
 * @param docsUrl address of the site
 */
export function docsAddress(page: string, section = '', docsUrl?: string): string {
  const address = docsUrl ? `${docsUrl.replace(/\/$/, '')}/${page}.html` : `docs/${page}.md`;
  return section ? `${address}#${section}` : address;
}

/** Address of a section of the page of runbooks. */
export const runbookAddress = (section?: string, docsUrl?: string): string => docsAddress('runbooks', section, docsUrl);

/**
 * What to do, by the page of runbooks, in plain text for one run; empty for a section that is not on the page.
 * @param page text of docs/runbooks.md
 */
export function runbookSteps(page: string, section: string, runId: string): string[] {
  const [, text = ''] = `\n${page}`.split(`\n## ${section}\n`);
  const [, steps = ''] = text.split('\n## ')[0]?.split('**What to do**\n') ?? [];
  return (steps.split('\n**')[0] ?? '')
    .replace(/\n {2,}/g, ' ')
    .split('\n')
    .filter((line) => /^(\d+\.|-) /.test(line))
    .map((line) =>
      line.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replace(/`[^`]*`/g, (code) => code.replace(/\bRUN\b/, runId)),
    );
}
