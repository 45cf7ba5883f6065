import path from 'node:path';
import { readText } from '../../lib/cli/inputs';

/** Reads files by their path relative to the folder of `file`. The reader throws a UsageError. */
export const readerBeside =
  (file: string) =>
  (named: string): string =>
    readText(path.resolve(path.dirname(file), named));
