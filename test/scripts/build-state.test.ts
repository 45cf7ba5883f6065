import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const MODULE = pathToFileURL(path.join(__dirname, '../../scripts/build-state.mjs')).href;
const folder = mkdtempSync(path.join(tmpdir(), 'slipway-build-state-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Builds a part in an empty folder, and asks whether it is built before and after each change. */
const PROGRAM = `
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { inputsOf, isBuilt, recordBuild } from '${MODULE}';
const IN = ['src', 'config.json'], OUT = ['out'];
const write = (name, text) => { mkdirSync(name.split('/')[0], { recursive: true }); writeFileSync(name, text); };
const answers = {};
const ask = (when) => { answers[when] = isBuilt('lib', inputsOf(IN), OUT); };
const build = () => { write('out/a.js', 'a'); recordBuild('lib', inputsOf(IN), OUT); };
write('src/a.ts', 'a');
writeFileSync('config.json', '{}');
ask('never built');
build();
ask('built');
answers['another part'] = isBuilt('cli', inputsOf(IN), OUT);
mkdirSync('src/__pycache__');
writeFileSync('src/__pycache__/a.pyc', '');
ask('Python compiled a source');
write('src/a.ts', 'b');
ask('a source changed');
build();
write('src/b.ts', '');
ask('a source was added');
build();
writeFileSync('config.json', '[]');
ask('a setting changed');
build();
write('out/a.js', 'edited');
ask('an output changed');
build();
rmSync('out/a.js');
ask('an output was removed');
process.stdout.write(JSON.stringify(answers));
`;

test('a part is built until one of its sources or what it wrote changes', () => {
  const answers = execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM], { cwd: folder });
  expect(JSON.parse(String(answers))).toEqual({
    'never built': false,
    built: true,
    'another part': false,
    'Python compiled a source': true,
    'a source changed': false,
    'a source was added': false,
    'a setting changed': false,
    'an output changed': false,
    'an output was removed': false,
  });
});
