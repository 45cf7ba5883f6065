/** A call: its name, what is before the last dot of it, and its values as tokens with a space between two. */
export interface Call {
  name: string;
  of: string;
  words: string[];
  named: Record<string, string>;
}

/** The statements of a script, as tokens with a space before each, and its calls. */
export interface Script {
  statements: string[];
  calls: Call[];
}

/**
 * Strings, comments, continued lines, words with their dots, and other characters. A string needs no end, so that none is read twice: the
 * parser @lezer/python takes a time that grows with the square of the length where a call is not closed.
 */
const TOKEN =
  /[rbfu]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?)|#.*|\\\r?\n|[\w.]+|[=!<>:]=|\S|\n/gi;
/** What is kept of the text of a bracket in that of the one around it. */
export const LONGEST = 1000;

/** The text of a literal; undefined for other values, such as f-strings, and for escapes. */
export const literal = (source = ''): string | undefined => /^[rbu]{0,2}("""|'''|"|')([^"'\\]*)\1$/i.exec(source)?.[2];

/** Reads a script as tokens. */
export function readScript(text: string): Script {
  const root = newBracket('', '');
  const open = [root];
  const statements: string[] = [];
  const calls: Call[] = [];
  let before = '';
  for (const [token] of `${text}\n`.matchAll(TOKEN)) {
    const top = open.at(-1) ?? root;
    if (token === '\n' && top === root) {
      statements.push(root.text);
      root.text = '';
    }
    if (/^[#\\\n]/.test(token)) continue;
    if (/^[([{]$/.test(token)) open.push(newBracket(token, /^[\w.]+$/.test(before) ? before : ''));
    else if (/^[)\]}]$/.test(token) && top !== root) {
      open.pop();
      endValue(top);
      if (top.opener === '(') calls.push(top);
      addTo(open.at(-1) ?? root, `${top.opener}${top.text.slice(0, LONGEST)} ${token}`);
    } else addTo(top, token);
    before = token;
  }
  return { statements, calls };
}

/** A bracket that is open, with all of its text, and the value that is being read. */
interface Bracket extends Call {
  opener: string;
  text: string;
  key: string;
  value: string;
}

function newBracket(opener: string, before: string): Bracket {
  const [, of = '', name = ''] = /^(?:(.*)\.)?(.*)$/.exec(before) ?? [];
  return { opener, name, of, words: [], named: {}, text: '', key: '', value: '' };
}

function addTo(bracket: Bracket, token: string): void {
  bracket.text += ` ${token}`;
  const isKey = token === '=' && bracket.key === '' && bracket.value.length < LONGEST && /^ \w+$/.test(bracket.value);
  if (token === ',') endValue(bracket);
  else if (isKey) [bracket.key, bracket.value] = [bracket.value.trim(), ''];
  else bracket.value += ` ${token}`;
}

function endValue(bracket: Bracket): void {
  const { key, value } = bracket;
  if (key) bracket.named[key] = value.trim();
  else if (value) bracket.words.push(value.trim());
  Object.assign(bracket, { key: '', value: '' });
}
