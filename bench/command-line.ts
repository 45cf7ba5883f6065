import { readFileSync } from 'node:fs';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { z } from 'zod';
import { UsageError } from '../lib/cli/exit';

type Options = NonNullable<ParseArgsConfig['options']>;

/** Options of a bench command; `--help` prints the usage and ends the program. */
export function readOptions<const T extends Options>(
  usage: string,
  options: T,
): ReturnType<typeof parseArgs<{ options: T }>>['values'] {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usage}`);
  }
}

/** The JSON file that an option names. */
export function readJson(option: string, file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(
      `${option}: must name a JSON file that can be read, got ${file} (${(error as Error).message})`,
    );
  }
}

/** A value in the form of `schema`, else every place where it is not. */
export function checked<T>(option: string, schema: z.ZodType<T>, value: unknown): T {
  const { data, error } = schema.safeParse(value);
  if (!error) return data;
  throw new UsageError(
    error.issues
      .map(({ path, message }) => `${[option, path.join('.')].filter(Boolean).join(': ')}: ${message}`)
      .join('\n'),
  );
}

/** Runs `main` for its exit code; what the caller got wrong is one line each and 2. */
export function command(main: () => number): void {
  try {
    process.exitCode = main();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
