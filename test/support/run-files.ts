import { readdirSync } from 'node:fs';
import path from 'node:path';

/** The folder of the run files that the package ships. */
export const RUNS = path.join(__dirname, '../../runs');
/** Their paths below it; the YAML files beside scripts are configurations of their libraries. */
export const RUN_FILES = readdirSync(RUNS, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.yaml') && !name.startsWith('scripts/'),
);
