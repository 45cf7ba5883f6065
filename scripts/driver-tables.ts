/** Writes the driver's tables from the catalog: `npm run driver:tables`. A test holds the file to what this script makes. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverTables } from './driver-tables/text';

writeFileSync(path.join(__dirname, '../containers/driver/slipway_driver/tables.py'), driverTables());
