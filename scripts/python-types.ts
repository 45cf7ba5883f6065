// Writes the generated modules of the Python client. test/clients/python-types.test.ts fails when one is stale.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pythonCodeFiles, pythonTypes } from './python-types/module';

const FOLDER = path.join(__dirname, '../clients/python/src/slipway');
writeFileSync(path.join(FOLDER, 'types.py'), pythonTypes());
writeFileSync(path.join(FOLDER, '_code_constants.py'), pythonCodeFiles());
