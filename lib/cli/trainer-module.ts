import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from 'node:child_process';
import path from 'node:path';
import { EXIT_CODES } from '../core/catalog/exit-codes';
import { packageRoot } from '../shared/local/own-package';
import { Refusal, ServiceError, UsageError } from './exit';

/**
 * Python code before anything is imported: the working folder, whose modules may be anybody's, is no place to import from. `-P` would do so from
 * Python 3.11 on, and `-I` also leaves out PYTHONPATH.
 */
const START = 'import sys; sys.path[:] = [folder for folder in sys.path if folder];';
/** Prints the version of Python and the packages of its arguments that it lacks. */
const PROBE = `${START} import importlib.util as u; print("%d.%d" % sys.version_info[:2], *[n for n in sys.argv[1:] if u.find_spec(n) is None])`;
/** Runs the module of the first argument in as many bytes as the second one says, where the system can limit them; 0 = in any number. */
const RUN = `${START}
import contextlib, runpy
module, most = sys.argv.pop(1), int(sys.argv.pop(1))
with contextlib.suppress(ImportError, OSError, ValueError):
    import resource
    if most: resource.setrlimit(resource.RLIMIT_DATA, (most, most))
runpy.run_module(module, run_name="__main__", alter_sys=True)`;
const OLDEST_MINOR = 10;

/** How a module of the trainer runs on this machine. */
export interface ModuleRun {
  /** @default python3 */
  python?: string;
  packages: readonly string[];
  /** Rule and path of its errors. */
  rule: string;
  path: string;
  /** What it may take: templates of models are programs that may never end. @default - as much as it needs */
  limits?: { seconds: number; gib: number };
  /** Variables besides those of this process. @default - none */
  env?: Readonly<Record<string, string>>;
  /** Whether its output goes to stderr of this process while it runs. @default false */
  isShown?: boolean;
}

/**
 * Runs a module of the trainer with the Python of this machine, and returns its standard output.
 * @throws UsageError when Python lacks something, Refusal with an error of the module, and ServiceError with one after which a job tries again
 */
export function runTrainerModule(module: string, words: readonly string[], run: ModuleRun): string {
  const { python = 'python3', packages, rule, limits } = run;
  requirePackages(python, packages);
  const bytes = (limits?.gib ?? 0) * 2 ** 30;
  const options: SpawnSyncOptionsWithStringEncoding = {
    env: { ...process.env, ...run.env, PYTHONPATH, PYTHONUTF8: '1' },
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    killSignal: 'SIGKILL',
    timeout: limits && limits.seconds * 1000,
    ...(run.isShown && { stdio: ['ignore', process.stderr, 'pipe'] }),
  };
  const called = spawnSync(python, ['-B', '-c', RUN, `slipway_trainer.${module}`, String(bytes), ...words], options);
  const { status, signal, stdout, stderr, error } = called;
  if (status === 0) return stdout?.trimEnd() ?? '';
  const last = stderr.trimEnd().split('\n').at(-1)?.replace('slipway_trainer: error: ', '') ?? '';
  if (EXIT_CODES.some(({ code, name }) => code === status && name === 'TRY_AGAIN')) throw new ServiceError(last);
  const cause = (error as NodeJS.ErrnoException | undefined)?.code;
  const message =
    limits && (cause === 'ETIMEDOUT' || last === 'MemoryError')
      ? `${run.path}: must be rendered in ${limits.seconds} s and ${limits.gib} GiB, got more; correct the chat template or shorten the rows`
      : cause === 'ENOBUFS'
        ? `${run.path}: must print at most ${options.maxBuffer} bytes, got more; use fewer or shorter rows`
        : signal
          ? `${run.path}: must be read by ${python}, got its end by ${signal}${last && `: ${last}`}; run it again, with more free memory or another --python`
          : last;
  throw new Refusal([{ rule, level: 'error', path: run.path, message }]);
}

const PYTHONPATH = ['trainer', 'driver']
  .map((part) => path.join(packageRoot(), 'containers', part))
  .join(path.delimiter);

function requirePackages(python: string, packages: readonly string[]): void {
  const env = { ...process.env, PYTHONPATH };
  const { stdout, error } = spawnSync(python, ['-c', PROBE, ...packages], { encoding: 'utf8', env });
  const [version, ...missing] = error ? [] : stdout.trim().split(' ');
  const isOld = Number(version?.split('.')[1]) < OLDEST_MINOR;
  if (version && !isOld && missing.length === 0) return;
  const got = version
    ? `Python ${version}${missing.length > 0 ? ` without ${missing.join(' and ')}` : ''}`
    : `no ${python}`;
  throw new UsageError(
    `--python: must be Python 3.${OLDEST_MINOR} or later with ${packages.join(' and ')}, got ${got}; install them (pip install ${packages.join(' ')}), or name another Python`,
  );
}
