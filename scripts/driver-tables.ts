/** Writes the tables that driver and trainer share with lib/core: `npm run driver:tables`. A test holds the files to what this script makes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverTables, peakTable, phaseTable } from './driver-tables/text';

const CONTAINERS = path.join(__dirname, '../containers');
writeFileSync(path.join(CONTAINERS, 'driver/slipway_driver/tables.py'), driverTables());
writeFileSync(path.join(CONTAINERS, 'trainer/slipway_trainer/peak_tflops.py'), peakTable());
writeFileSync(path.join(CONTAINERS, 'trainer/slipway_trainer/phase_seconds.py'), phaseTable());
