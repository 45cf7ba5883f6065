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
