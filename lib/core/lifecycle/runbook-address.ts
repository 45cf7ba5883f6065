/**
 * Address of a section of the page of runbooks: on the documentation site of the company, or in the package.
 * @param docsUrl address of the site
 */
export const runbookAddress = (runbook: string, docsUrl?: string): string =>
  docsUrl ? `${docsUrl.replace(/\/$/, '')}/runbooks.html#${runbook}` : `docs/runbooks.md#${runbook}`;
