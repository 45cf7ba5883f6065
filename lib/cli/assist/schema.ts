import { jsonSchema } from '../../core/config/load';
import { answersSchema } from '../../core/contracts/answers';
import { LIBRARIES } from '../../core/distribution';
import { EXIT, UsageError } from '../exit';
import { json, type Terminal } from '../terminal';

/** `slipway tools schema run|environment|answers`: prints the JSON Schema of a file, for editors, or of `--json` outputs, for scripts. */
export function schema(kind: string, terminal: Terminal): number {
  if (kind !== 'run' && kind !== 'environment' && kind !== 'answers') {
    throw new UsageError(`tools schema: must be run, environment or answers, got ${kind}; use one of them`);
  }
  terminal.out(json(kind === 'answers' ? answersSchema() : jsonSchema(kind, LIBRARIES)));
  return EXIT.done;
}
