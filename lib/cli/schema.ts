import { LIBRARIES } from '../distribution';
import { jsonSchema } from '../spec/load';
import { EXIT, UsageError } from './exit';
import { json, type Terminal } from './terminal';

/** `slipway schema run|environment`: the JSON Schema, for editors. */
export function schema(kind: string, terminal: Terminal): number {
  if (kind !== 'run' && kind !== 'environment') {
    throw new UsageError(`schema: must be run or environment, got ${kind}; use one of them`);
  }
  terminal.out(json(jsonSchema(kind, LIBRARIES)));
  return EXIT.done;
}
