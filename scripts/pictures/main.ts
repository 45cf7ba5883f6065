// `npm run docs:pictures`: the pictures of the documentation, docs/images/*.svg.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pictures } from './pictures';

async function main(): Promise<void> {
  for (const [file, content] of await pictures())
    writeFileSync(path.join(__dirname, '../../docs/images', file), content);
}

main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
