// `npm run docs:pictures`: the pictures of the documentation, docs/images/*.svg, and with Chromium (CHROMIUM names it, else `chromium`) those
// of two pages: of a team, from scripts/pictures/team.yaml, and of the run of which `npm run demo` left the report.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { annotated, REPORT_MARKS, screenshot, TEAM_MARKS } from './page-picture';
import { pictures } from './pictures';
import { simulated } from './simulated';

const ROOT = path.join(__dirname, '../..');
const IMAGES = path.join(ROOT, 'docs/images');
const REPORT = path.join(ROOT, '.slipway/demo/report.html');

async function main(): Promise<void> {
  for (const [file, content] of await pictures()) writeFileSync(path.join(IMAGES, file), content);
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-pictures-'));
  try {
    const team = path.join(folder, 'team.html');
    writeFileSync(team, annotated((await simulated()).page, TEAM_MARKS));
    screenshot(team, path.join(IMAGES, 'team-page.png'), { height: 1260 });
    if (!existsSync(REPORT)) {
      process.stderr.write('docs/images/report.png stays as it is: npm run demo makes the report that it shows\n');
      return;
    }
    const report = path.join(folder, 'report.html');
    writeFileSync(report, annotated(readFileSync(REPORT, 'utf8'), REPORT_MARKS));
    screenshot(report, path.join(IMAGES, 'report.png'), { height: 1736 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
