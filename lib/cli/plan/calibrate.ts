import { existsSync } from 'node:fs';
import { type Calibration, type Measurement, measuredReportSchema } from '../../core/config/calibration-file';
import { textTable } from '../../core/config/formats/plain-text';
import { calibrate } from '../../core/planner/run/calibration';
import { assembleReport } from '../../report/read/assemble';
import type { RunReport } from '../../report/run/run-report';
import { findDescriptor } from '../environment/environment';
import { EXIT, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { readSources } from '../runs/reports/report-sources';
import { json, type Terminal } from '../terminal';
import { readCalibration, writeCalibration } from './calibration-file';

type Measured = Pick<RunReport, 'runId' | 'environment' | 'speed'>;

/** `slipway plan --calibrate RUN...`: reads measured steps of own runs and writes the environment's efficiencies. */
export async function calibrateRuns(
  runs: readonly string[],
  file: string | undefined,
  options: CommonOptions,
  terminal: Terminal,
): Promise<number> {
  // Commander assigns the values after the option to it, so a file before it was given by mistake.
  if (file !== undefined)
    throw new UsageError(
      `--calibrate: must be given without a file to plan, got ${file}; calibrate first, then call slipway plan ${file}`,
    );
  const reports = await Promise.all(runs.map((run) => reportOf(run, options)));
  const environment = oneEnvironment(reports);
  const measurements = reports.map((report, index) => measurementOf(report, runs[index] ?? ''));
  const before = readCalibration(environment)?.measurements ?? [];
  const calibration = calibrate(environment, [...before, ...measurements]);
  const written = writeCalibration(calibration);
  if (options.json) terminal.out(json({ file: written, ...calibration }));
  else terminal.out(calibrationText(calibration, written));
  return EXIT.done;
}

/** The report in a JSON file, or the report of a run id, created now. */
async function reportOf(run: string, options: CommonOptions): Promise<Measured> {
  if (!run.endsWith('.json') && !existsSync(run))
    return assembleReport(await readSources(await findDescriptor(options), run, new Date()));
  let data: unknown;
  try {
    data = JSON.parse(readText(run));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `--calibrate: must be a run id or a file of slipway report --json, got ${run}, which is not JSON; specify another one`,
    );
  }
  const { success, data: report } = measuredReportSchema.safeParse(data);
  if (!success)
    throw new UsageError(
      `--calibrate: must be a run id or a file of slipway report --json, got ${run}, which is another JSON file; specify another one`,
    );
  return report;
}

function oneEnvironment(reports: readonly Measured[]): string {
  const [environment = '', ...others] = [...new Set(reports.map((report) => report.environment))];
  if (others.length > 0)
    throw new UsageError(
      `--calibrate: must be runs of one environment, got ${[environment, ...others].join(', ')}; calibrate each separately`,
    );
  return environment;
}

function measurementOf({ runId, speed }: Measured, given: string): Measurement {
  if (!speed)
    throw new UsageError(
      `--calibrate: must be runs that the planner supports (GPUs, model and sequence length), got ${given}; leave it out`,
    );
  if (speed.measured === null)
    throw new UsageError(
      `--calibrate: must be runs with at least 15 reported steps in one attempt, got ${given}; use a longer run`,
    );
  const { key, planned, interval80, measured } = speed;
  return { runId, key, planned, interval80, measured };
}

function calibrationText({ measurements, efficiencies }: Calibration, file: string): string {
  const rows = measurements.map(({ runId, key, planned, measured }) => [
    runId,
    key,
    planned.toFixed(0),
    measured.toFixed(0),
    (planned * (efficiencies[key]?.speed ?? 1)).toFixed(0),
  ]);
  return [
    textTable(['run', 'accelerator/library/precision', 'planned', 'measured', 'calibrated'], rows),
    `wrote ${file}: later plans of this environment use it`,
  ].join('\n');
}
