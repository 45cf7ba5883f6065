import path from 'node:path';
import { type MeasuredFile, type MeasuredFunction, measureFile, sourceFiles } from './source';

export const LONGEST_FUNCTION = 40;
export const MOST_PARAMETERS = 4;
export const MOST_FILES = 15;

export const measureFolder = (folder: string): MeasuredFile[] => {
  const files = sourceFiles(folder);
  const known = new Set(files);
  return files.map((file) => measureFile(file, known));
};

/** Functions longer than 40 lines, longest first. */
export const longFunctions = (files: readonly MeasuredFile[]): MeasuredFunction[] =>
  files
    .flatMap(({ functions }) => functions)
    .filter(({ lines }) => lines > LONGEST_FUNCTION)
    .sort((a, b) => b.lines - a.lines);

export const functionsOfManyParameters = (files: readonly MeasuredFile[]): MeasuredFunction[] =>
  files.flatMap(({ functions }) => functions).filter(({ parameters }) => parameters > MOST_PARAMETERS);

/** Folders with more files at one level than 15, by name. */
export function crowdedFolders(files: readonly MeasuredFile[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { file } of files) {
    const folder = path.posix.dirname(file);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return new Map([...counts].filter(([, count]) => count > MOST_FILES));
}

/** Groups of files that import each other, directly or through others (Tarjan's strongly connected components), types included. */
export function importCycles(files: readonly MeasuredFile[]): string[][] {
  const byName = new Map(files.map((one) => [one.file, one]));
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file) ?? 0);
    stack.push(file);
    for (const other of byName.get(file)?.imports ?? []) {
      if (!index.has(other)) visit(other);
      else if (!stack.includes(other)) continue;
      low.set(file, Math.min(low.get(file) ?? 0, low.get(other) ?? 0));
    }
    if (low.get(file) !== index.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1 || byName.get(file)?.imports.includes(file)) cycles.push(group.sort());
  };
  for (const { file } of files) if (!index.has(file)) visit(file);
  return cycles;
}

/** Exports of a module, and how many of them have a documentation comment. */
export function documented(files: readonly MeasuredFile[]): { all: number; documented: number } {
  const found = files.flatMap(({ exports }) => exports);
  return { all: found.length, documented: found.filter(({ isDocumented }) => isDocumented).length };
}

/** The value below which the share of the sorted values lies; 0 of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
