// Writes clients/python/src/slipway/types.py from the JSON Schemas. test/clients/python-types.test.ts fails when it is stale.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pythonTypes } from './python-types/module';

writeFileSync(path.join(__dirname, '../clients/python/src/slipway/types.py'), pythonTypes());
