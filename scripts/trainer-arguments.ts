/** Writes the catalog's list of the arguments of built-in code: `npm run trainer:arguments`. A test holds the file to what this script makes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { builtinArguments } from './trainer-arguments/text';

writeFileSync(path.join(__dirname, '../lib/core/catalog/builtin-arguments.json'), builtinArguments());
