// Reads one config.json per line from standard input and writes one line for each: its parameters, or what keeps it from being read.
// The Python tests compare the counts with those of transformers' own modules.
import { readFileSync } from 'node:fs';
import { layersOfBlocks } from '../lib/core/catalog/model/linear-layers';
import {
  activeParameterCount,
  type ParameterShape,
  parameterCount,
  parameterShape,
} from '../lib/core/catalog/model/parameters';
import { readConfig } from '../lib/core/catalog/model/read-config';
import { trainedModel } from '../lib/core/catalog/model/trainer-limits';
import { parseYaml } from '../lib/core/config/reading/yaml-file';

const STANDARD_INPUT = 0;

/** [name, inputs, outputs, number in the model] of the linear layers of blocks. */
function sizesOf(model: ParameterShape): [string, number, number, number][] {
  const found = new Map<string, [string, number, number, number]>();
  for (const { name, inputs, outputs, count, blocks } of layersOfBlocks(model)) {
    const key = `${name} ${inputs} ${outputs}`;
    found.set(key, [name, inputs, outputs, (found.get(key)?.[3] ?? 0) + count * blocks]);
  }
  return [...found.values()];
}

for (const line of readFileSync(STANDARD_INPUT, 'utf8').split('\n')) {
  if (line === '') continue;
  const { shape, problems } = readConfig(parseYaml(line).data as Record<string, unknown>);
  const counted = shape && parameterShape(shape);
  const answer = counted
    ? {
        parameters: parameterCount(counted),
        activeParameters: activeParameterCount(counted),
        linearLayers: sizesOf(counted),
        shape: trainedModel(shape),
      }
    : { problems };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
