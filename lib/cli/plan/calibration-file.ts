import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Calibration, calibrationSchema } from '../../core/config/calibration-file';
import { UsageError } from '../exit';

/** In the folder `environments` below the working folder. */
export const calibrationFile = (environment: string): string =>
  path.join('environments', `${environment}.calibration.json`);

/** The calibration of an environment; undefined when there is none. Throws UsageError for an invalid file. */
export function readCalibration(environment: string | undefined): Calibration | undefined {
  const file = environment === undefined ? undefined : calibrationFile(environment);
  if (file === undefined || !existsSync(file)) return undefined;
  const wrong = (got: string) =>
    new UsageError(
      `${file}: must be a file written by slipway plan --calibrate, got ${got}; remove it, and calibrate again`,
    );
  let data: unknown;
  try {
    data = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw wrong((error as Error).message);
  }
  const { success, data: found, error } = calibrationSchema.safeParse(data);
  if (!success) throw wrong(error.issues[0]?.message ?? 'something else');
  return found;
}

/** Writes the file atomically. Returns its path. Throws UsageError when it cannot be written. */
export function writeCalibration(calibration: Calibration): string {
  const file = calibrationFile(calibration.environment);
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, `${JSON.stringify(calibration, null, 2)}\n`);
    renameSync(`${file}.new`, file);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code;
    if (reason === undefined) throw error;
    throw new UsageError(`${file}: must be a file that can be written, got ${reason}; call the command elsewhere`);
  }
  return file;
}
