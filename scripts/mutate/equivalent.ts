import type { Mutant } from './mutants';

/** Lines whose change nobody could notice by what a run does, each with the reason. */
const EQUIVALENT: readonly { file: string; line: RegExp; why: string }[] = [];

/**
 * Whether a mutant changes one of those lines.
 * @throws Error when an entry fits no line of its file any more
 */
export function requireEquivalents(files: ReadonlyMap<string, string>): (mutant: Mutant) => boolean {
  for (const { file, line } of EQUIVALENT) {
    const isThere =
      files
        .get(file)
        ?.split('\n')
        .some((text) => line.test(text)) ?? false;
    if (!isThere)
      throw new Error(`scripts/mutate/equivalent.ts: no line of ${file} fits ${line}; remove or mend the entry`);
  }
  return ({ file, before }) => EQUIVALENT.some((one) => one.file === file && one.line.test(before));
}
