import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { drawsFrom } from '../../../lib/planner/deadline/draws';

/** A place in a file, lines and columns from 0, as Stryker's instrumenter counts. */
interface Place {
  line: number;
  column: number;
}

/** One mutant that Stryker would make. */
export interface PossibleMutant {
  /** `Ignored` for the mutators that are left out. */
  status?: string;
  fileName: string;
  location: { start: Place; end: Place };
}

interface Instrumenter {
  instrument(
    files: readonly { name: string; content: string; mutate: boolean }[],
    options: object,
  ): Promise<{ mutants: readonly PossibleMutant[] }>;
}

const QUIET = Object.fromEntries(
  ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, () => undefined]),
);
/** Texts of messages are judged by other tests, and by readers. */
export const EXCLUDED_MUTATIONS = ['StringLiteral', 'Regex'];

/** Every mutant of the files that is made, in the order of the files and of their text. */
export async function possibleMutants(
  stryker: string,
  root: string,
  files: readonly string[],
): Promise<PossibleMutant[]> {
  const module = path.join(stryker, 'node_modules', '@stryker-mutator', 'instrumenter', 'dist', 'src', 'index.js');
  const loaded = (await import(pathToFileURL(module).href)) as { Instrumenter: new (logger: object) => Instrumenter };
  const instrumenter = new loaded.Instrumenter({ ...QUIET, isDebugEnabled: () => false, isTraceEnabled: () => false });
  const inputs = files.map((name) => ({ name, content: readFileSync(path.join(root, name), 'utf8'), mutate: true }));
  const options = { plugins: null, ignorers: [], excludedMutations: EXCLUDED_MUTATIONS, noHeader: true };
  const { mutants } = await instrumenter.instrument(inputs, options);
  return mutants.filter(({ status }) => status !== 'Ignored');
}

/** A place with more mutants than these, mostly the body of a long function, is not drawn: it would be most of the sample, and emptying it is noticed anyway. */
const MOST_AT_ONE_PLACE = 8;

/** Places of `count` mutants as Stryker's option `mutate` takes them. A place may hold several mutants: all of them are made. */
export function drawPlaces(mutants: readonly PossibleMutant[], count: number, seed: number): string[] {
  const { uniform } = drawsFrom(seed);
  const left = [...mutants];
  const drawn = new Set<string>();
  let made = 0;
  while (made < count && left.length > 0) {
    const [chosen] = left.splice(Math.floor(uniform() * left.length), 1);
    if (!chosen) break;
    const { fileName, location } = chosen;
    const place = `${fileName}:${location.start.line + 1}:${location.start.column}-${location.end.line + 1}:${location.end.column}`;
    const here = mutants.filter((other) => isWithin(other, chosen)).length;
    if (drawn.has(place) || here > MOST_AT_ONE_PLACE) continue;
    made += here;
    drawn.add(place);
  }
  return [...drawn].sort();
}

const isWithin = (inner: PossibleMutant, outer: PossibleMutant): boolean =>
  inner.fileName === outer.fileName &&
  compare(inner.location.start, outer.location.start) >= 0 &&
  compare(inner.location.end, outer.location.end) <= 0;

const compare = (a: Place, b: Place): number => a.line - b.line || a.column - b.column;
