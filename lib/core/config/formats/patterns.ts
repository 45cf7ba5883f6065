/**
 * Letters that have the same meaning after a backslash in both languages; an unknown one is an error in Python and the letter itself in
 * JavaScript.
 */
const COMMON_ESCAPES = 'bBdDsSwWfnrtvxu';

/**
 * Number of capturing groups of a JavaScript regular expression; undefined when it is invalid. The expression is never executed: even on an
 * empty text, `(|)(|)(|)z` has 2^n ways to fail.
 */
export function countGroups(regex: string): number | undefined {
  try {
    new RegExp(regex);
  } catch {
    return undefined;
  }
  // Each stands for one character, so that what is beside it does not meet.
  const plain = regex.replace(/\\[\s\S]/g, 'a').replace(/\[[^\]]*\]/g, 'a');
  return plain.match(/\((?!\?)|\(\?<(?![=!])/g)?.length ?? 0;
}

/**
 * Why a regular expression does not have the same meaning in JavaScript, which checks it here and reads logs for reports, and in Python's
 * `re` (3.8 to 3.13), with which the driver reads the log; undefined when it is valid in both.
 */
export function regexProblem(regex: string): string | undefined {
  const groups = countGroups(regex);
  if (groups === undefined) return 'close its groups and brackets';
  const unknown = [...regex.matchAll(/\\([\s\S])/g)].map((found) => found[1] ?? '').find(isUnknownToPython);
  if (unknown) return `write it without \\${unknown}, which is not the same in Python`;
  const references = [...regex.replaceAll('\\\\', '').matchAll(/\\([1-9]\d*)/g)].map((found) => Number(found[1]));
  if (references.some((number) => number > groups)) return 'refer only to groups that it has';
  if (hasBadHex(regex)) return 'write \\x with two hexadecimal digits and \\u with four';
  const plain = regex.replace(/\\[\s\S]/g, 'a');
  if (/\(\?<[A-Za-z_$]/.test(plain)) return 'leave the name of the group out';
  if (/\[\^?\]/.test(plain)) return 'put a character between [ and ]';
  if (/\(\?<[=!][^)]*[*+?{|]/.test(plain)) return 'give the lookbehind a fixed length';
  if (/\(\?[=!<][^)]*\)[*+?{]/.test(plain)) return 'do not repeat a lookahead or lookbehind';
  if (/\{,\d*\}/.test(plain)) return 'write the lower bound of the repetition, {0,n}';
  return undefined;
}

const isUnknownToPython = (letter: string): boolean => /[A-Za-z]/.test(letter) && !COMMON_ESCAPES.includes(letter);

const hasBadHex = (regex: string): boolean => {
  const escapes = regex.replaceAll('\\\\', '');
  return /\\x(?![0-9A-Fa-f]{2})|\\u(?![0-9A-Fa-f]{4})/.test(escapes);
};

/** The characters of a text, one at a time. */
type Characters = Pick<string, 'length' | 'charAt'>;

interface GlobOptions {
  /** A wildcard for exactly one character. @default - none: only `*` is a wildcard */
  one?: string;
  /** A character that no wildcard matches, such as `/` in paths. @default - wildcards match every character */
  separator?: string;
}

/**
 * Whether a pattern with `*`, which stands for any number of characters, matches a whole text. Returns only to the last `*`, so that the
 * number of steps is at most the product of both lengths, whatever the pattern.
 */
export function matchesGlob(glob: string, text: Characters, { one, separator }: GlobOptions = {}): boolean {
  let [inGlob, inText] = [0, 0];
  let last: { star: number; end: number } | undefined;
  while (inText < text.length) {
    const wanted = glob.charAt(inGlob);
    const found = text.charAt(inText);
    if (wanted === '*') {
      last = { star: inGlob, end: inText };
      inGlob += 1;
    } else if (wanted !== '' && (wanted === found || (wanted === one && found !== separator))) {
      inGlob += 1;
      inText += 1;
    } else if (last && text.charAt(last.end) !== separator) {
      last.end += 1;
      inGlob = last.star + 1;
      inText = last.end;
    } else return false;
  }
  while (glob.charAt(inGlob) === '*') inGlob += 1;
  return inGlob === glob.length;
}
