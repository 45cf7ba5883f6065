import { execFileSync } from 'node:child_process';

/** Parts of the page of a team, in the order of the marks; the guide explains each. */
export const TEAM_MARKS = ['<h1', 'id="spend"', 'id="running"', 'id="queue"', 'id="failed"'];
/** The same of the report of a run. */
export const REPORT_MARKS = ['<h1', 'id="launch"', 'id="attempts"', 'id="loss"'];

const STYLE =
  '<style>.mark-n{position:absolute;right:2.25rem;width:2rem;height:2rem;border-radius:50%;border:3px solid var(--bad);color:var(--bad);background:var(--card);font:700 1.125rem/1.7rem system-ui,sans-serif;text-align:center}</style>';

/** A page with a number at each of these parts; throws when it lacks one. */
export function annotated(page: string, marks: readonly string[]): string {
  return marks.reduce(
    (text, start, i) => {
      const at = text.indexOf(start);
      if (at < 0) throw new Error(`docs:pictures: the page must contain ${start}`);
      const from = text.lastIndexOf('<', at);
      const inside = start.startsWith('id=') ? text.indexOf('>', at) + 1 : from;
      return `${text.slice(0, inside)}<span class="mark-n">${i + 1}</span>${text.slice(inside)}`;
    },
    page.replace('</head>', `${STYLE}</head>`),
  );
}

/** A picture of a page as Chromium draws it. */
export function screenshot(page: string, image: string, { height }: { height: number }): void {
  const options = [
    '--headless',
    '--no-sandbox',
    '--hide-scrollbars',
    `--window-size=880,${height}`,
    '--force-device-scale-factor=1.5',
    `--screenshot=${image}`,
  ];
  execFileSync(process.env.CHROMIUM ?? 'chromium', [...options, `file://${page}`], { stdio: 'ignore' });
}
