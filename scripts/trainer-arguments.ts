/** Writes the catalog's lists of the arguments of built-in code and of the families whose weights it imports, and its constants: `npm run trainer:arguments`. A test holds the files to what this script makes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { builtinArguments, importedFamilies, trainerConstants } from './trainer-arguments/text';

const CATALOG = path.join(__dirname, '../lib/core/catalog');
writeFileSync(path.join(CATALOG, 'builtin-arguments.json'), builtinArguments());
writeFileSync(path.join(CATALOG, 'model/imported-families.json'), importedFamilies());
writeFileSync(path.join(CATALOG, 'trainer-constants.json'), trainerConstants());
