// Reads one model per line from standard input, a config.json or the section model.architecture of a run file, and answers each at once with
// what job.json says of it: the architecture, and how files of its weights describe it. For the Python tests.
import { createInterface } from 'node:readline';
import { publishedConfigs } from '../lib/core/catalog/model/published';
import { readConfig } from '../lib/core/catalog/model/read-config';
import { trainedModel } from '../lib/core/catalog/model/trainer-limits';
import { configKeys } from '../lib/core/config/inline';
import { resolveModel } from '../lib/core/config/run/model';
import type { RunFile } from '../lib/core/config/run-file';

createInterface({ input: process.stdin }).on('line', (line) => {
  const given = configKeys(line);
  const read = 'model_type' in given ? readConfig(given) : { shape: given, problems: [] };
  const architecture = read.shape && resolveModel({ model: { architecture: read.shape } } as RunFile)?.architecture;
  const published = architecture && publishedConfigs(architecture, 'model_type' in given ? given : undefined);
  process.stdout.write(
    `${JSON.stringify(published ? { ...trainedModel(architecture), published } : { problems: read.problems })}\n`,
  );
});
