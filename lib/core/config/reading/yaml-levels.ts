import { Lexer, Parser } from 'yaml';
import { MAX_LEVELS } from './limits';

/** The stack also contains the document and the section around a list. */
const MAX_STACK = 2 * MAX_LEVELS;

/**
 * Whether YAML text has many more than `MAX_LEVELS` levels. Its tokens are read without recursion: the parser of documents is recursive, and
 * V8 ends the process if it compiles a regular expression when the stack is nearly full.
 */
export function isTooDeep(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const _token of parser.next(lexeme));
    if (parser.stack.length > MAX_STACK) return true;
  }
  return false;
}
