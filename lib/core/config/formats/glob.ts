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
