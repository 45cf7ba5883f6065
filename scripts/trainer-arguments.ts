/** Writes the catalog's list of the arguments of built-in code, and the constants of the trainer: `npm run trainer:arguments`. A test holds the files to what this script makes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { builtinArguments, trainerConstants } from './trainer-arguments/text';

const CATALOG = path.join(__dirname, '../lib/core/catalog');
writeFileSync(path.join(CATALOG, 'builtin-arguments.json'), builtinArguments());
writeFileSync(path.join(CATALOG, 'trainer-constants.json'), trainerConstants());
