import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The browser of this machine; undefined where there is none. */
export const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/** What a browser made of a page. */
interface Shot {
  /** Bytes of the picture: a blank page has a few thousand. */
  bytes: number;
  /** What the page wrote to the console: errors, and warnings of policies. */
  console: string[];
}

/** Widths of a screen and of a phone, pixels. */
const WIDTHS = [1200, 390];

/** What is wrong with pages: an error on the console, or nothing to see, on a screen and on a phone. Empty where all of them open. */
export function problemsOf(pages: readonly string[]): string[] {
  return pages.flatMap((page) =>
    WIDTHS.flatMap((width) => {
      const { bytes, console } = screenshot(page, width);
      const blank = bytes > 20_000 ? [] : [`${bytes} bytes`];
      return [...console, ...blank].map((what) => `${path.basename(page)}, ${width} pixels: ${what}`);
    }),
  );
}

/**
 * Opens a page of the disk in a headless browser and takes its picture, beside the page; `SLIPWAY_SCREENSHOTS` names a folder that gets a
 * copy, for people to look at.
 * @param width of the window in pixels
 */
function screenshot(page: string, width: number): Shot {
  const picture = `${page}.${width}.png`;
  const options = '--headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --v=0'.split(' ');
  const size = [`--window-size=${width},2400`, `--screenshot=${picture}`, `file://${page}`];
  const { stderr } = spawnSync(CHROMIUM ?? '', [...options, ...size], { encoding: 'utf8', timeout: 120_000 });
  const kept = process.env.SLIPWAY_SCREENSHOTS;
  if (kept) {
    mkdirSync(kept, { recursive: true });
    copyFileSync(picture, path.join(kept, path.basename(picture)));
  }
  const said = stderr.split('\n').filter((line) => /:CONSOLE/.test(line));
  return { bytes: readFileSync(picture).length, console: said };
}
