import { createHash } from 'node:crypto';

/** One changed line of one file. */
export interface Mutant {
  file: string;
  /** From 1. */
  line: number;
  kind: 'comparison turned' | 'number changed' | 'condition dropped' | 'call removed';
  before: string;
  after: string;
}

/** Comparisons and what each is turned into; the spaces keep type arguments and arrows out. */
const TURNED: readonly (readonly [string, string])[] = [
  [' <= ', ' > '],
  [' >= ', ' < '],
  [' < ', ' >= '],
  [' > ', ' <= '],
  [' === ', ' !== '],
  [' !== ', ' === '],
];

/** Lines that are no code, or whose change nothing but a log or a text shows. */
const LEFT_OUT =
  /^\s*(\*|\/\/|\/\*|import |export \{|export type|type |interface |\| |\}$)|deps\.log\(|text[:=]|`.*`|\?: |=> \w+;$/;

/** Every mutant of a file, a pure function of its text. */
export function mutantsOf(file: string, text: string): Mutant[] {
  return text.split('\n').flatMap((before, i) => {
    if (LEFT_OUT.test(before)) return [];
    const made = (kind: Mutant['kind'], after: string): Mutant[] =>
      after === before ? [] : [{ file, line: i + 1, kind, before, after }];
    return [
      ...TURNED.filter(([from]) => before.includes(from)).flatMap(([from, to]) =>
        made('comparison turned', before.replace(from, to)),
      ),
      ...made(
        'number changed',
        before.replace(/(= |\* )(\d[\d_]*)(;|\n|$)/, (_, head, number, tail) => `${head}${changed(number)}${tail}`),
      ),
      ...made('condition dropped', before.replace(/ && [^()&|]+?(\)|;|$)/, '$1')),
      ...made('condition dropped', before.replace(/^(\s*)if \((.*)\) (return|throw|continue)\b/, '$1if (false) $3')),
      ...made('call removed', before.replace(/^(\s*)(if \(.*\) )?await [\w.]+\(.*\);$/, '$1')),
    ];
  });
}

/** A tenth of large numbers, one more of small ones. */
const changed = (text: string): string => {
  const number = Number(text.replaceAll('_', ''));
  return String(number >= 10 ? Math.round(number / 10) : number + 1);
};

/**
 * So many of the wanted mutants, each as likely as any other, and how many there are. The draw depends on the text of the lines and not on
 * where they are: a change of other lines leaves it as it was.
 */
export function drawMutants(
  files: ReadonlyMap<string, string>,
  count: number,
  seed: number,
  isWanted: (mutant: Mutant) => boolean,
): { drawn: Mutant[]; wanted: number; all: number } {
  const all = [...files].flatMap(([file, text]) => mutantsOf(file, text));
  const wanted = all.filter(isWanted);
  const place = ({ file, before, after }: Mutant) =>
    createHash('sha256').update([seed, file, before, after].join('\n')).digest('hex');
  const placed = wanted.map((mutant) => ({ mutant, at: place(mutant) })).sort((a, b) => (a.at < b.at ? -1 : 1));
  const drawn = placed.slice(0, count).map(({ mutant }) => mutant);
  return { drawn, wanted: wanted.length, all: all.length };
}
