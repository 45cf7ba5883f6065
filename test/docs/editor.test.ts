// What an editor with yaml-language-server shows in a run file or an environment file.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RUN_FILES } from '../support/run-files';
import { YamlLanguageServer } from '../support/yaml-language-server';

const ROOT = path.join(__dirname, '../..');
const ENVIRONMENT_FILES = readdirSync(path.join(ROOT, 'environments'));
const RUN = '# yaml-language-server: $schema=../schema/run.schema.json\n';
const ENVIRONMENT = '# yaml-language-server: $schema=../schema/environment.schema.json\n';

let server: YamlLanguageServer;
beforeAll(async () => {
  server = await YamlLanguageServer.start(ROOT);
}, 60_000);
afterAll(() => server.stop());

const openRun = (name: string, text: string) => server.open(path.join(ROOT, 'runs', `${name}.yaml`), RUN + text);

test.each([
  ['runs', 'run', RUN_FILES],
  ['environments', 'environment', ENVIRONMENT_FILES],
])('every file of %s names the schema of its kind in its first line', (folder, kind, names) => {
  for (const name of names) {
    const [firstLine] = readFileSync(path.join(ROOT, folder, name), 'utf8').split('\n');
    const up = '../'.repeat(name.split('/').length);
    expect([name, firstLine]).toEqual([name, `# yaml-language-server: $schema=${up}schema/${kind}.schema.json`]);
  }
});

test('hovering a field shows what it is and its default', async () => {
  const shown = await server.hover(await openRun('hover', 'limits:\n  maxAtt|empts: 3\n'));
  expect(shown).toContain(
    'Maximum number of failed attempts of the whole run that committed nothing new. Default: 20.',
  );
});

test('hovering a field inside a list, a union and a record', async () => {
  const channel = await server.hover(await openRun('hover-list', 'data:\n  - chan|nel: train\n'));
  expect(channel).toContain('Name of the channel');
  const elastic = await server.hover(await openRun('hover-union', 'compute:\n  instanceCount: { mi|n: 2, max: 4 }\n'));
  expect(elastic).toContain('Minimum number of instances');
  const file = path.join(ROOT, 'environments/hover.yaml');
  const share = await server.hover(await server.open(file, `${ENVIRONMENT}teams:\n  nlp:\n    sha|re: 2\n`));
  expect(share).toContain('Share of the team in the queue');
});

test('completion offers the fields of a section and the values of a field', async () => {
  const fields = await server.complete(await openRun('fields', 'compute:\n  |\n'));
  expect(fields).toEqual(expect.arrayContaining(['instanceType', 'instanceCount', 'capacity', 'healthCheck']));
  const values = await server.complete(await openRun('values', 'compute:\n  capacity: |\n'));
  expect(values).toEqual(expect.arrayContaining(['on-demand', 'spot', 'training-plan']));
  expect(await server.complete(await openRun('library', 'distribution:\n  library: |\n'))).toContain('megatron');
});

test('a misspelt field and a wrong value are marked in their lines', async () => {
  const text = 'name: first\ncode: { source: builtin }\ncompute:\n  instanceTyp: ml.p5.48xlarge\n  capacity: cheap\n';
  const { diagnostics } = await openRun('wrong', text);
  const found = diagnostics.map(({ range, message }) => `${range.start.line}: ${message}`).sort();
  expect(found).toEqual([expect.stringMatching(/^4: .*instanceTyp/), expect.stringMatching(/^5: .*on-demand/)]);
});

test.each([
  ['runs', RUN_FILES],
  ['environments', ENVIRONMENT_FILES],
])('the files of %s have no diagnostics', async (folder, files) => {
  const found = files.map(async (name) => {
    const file = path.join(ROOT, folder, name);
    const { diagnostics } = await server.open(file, readFileSync(file, 'utf8').replaceAll('|', ' '));
    return { name, diagnostics };
  });
  expect(await Promise.all(found)).toEqual(files.map((name) => ({ name, diagnostics: [] })));
});
