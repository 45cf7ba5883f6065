import type { Command } from 'commander';
import { REGION_FORM } from '../core/catalog/regions';
import { UsageError } from './exit';
import type { Terminal } from './terminal';

/** Registers the verbs of a folder; the code of each is loaded when it is called, so that `--help` stays fast. */
export interface CommandLine {
  root: Command;
  /** Adds a verb with the options that all verbs have. */
  verb(name: string, description: string, example: string): Command;
  terminal: Terminal;
  /** Called once, with the exit code. */
  done(code: number): void;
  /** Runs another verb as if it had been typed, and returns its exit code. */
  run: (args: readonly string[], into: Terminal) => Promise<number>;
}

/**
 * Parses the value of `--region`, which may be a region that is newer than this version.
 * @throws UsageError
 */
export function regionGiven(value: string): string {
  if (REGION_FORM.test(value)) return value;
  throw new UsageError(`--region: must be a region such as us-west-2, got ${value || 'nothing'}; correct its name`);
}

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, previous: string[] = []): string[] => [...previous, value];
