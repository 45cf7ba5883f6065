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
