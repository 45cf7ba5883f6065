import type { Comment } from 'oxc-parser';

/** Text of the documentation comment that stands directly before an offset; undefined where there is none. */
export function docCommentBefore(text: string, comments: readonly Comment[], offset: number): string | undefined {
  const last = comments.findLast(({ end }) => end <= offset);
  if (last?.type !== 'Block' || !last.value.startsWith('*')) return undefined;
  return text.slice(last.end, offset).trim() === '' ? last.value.slice(1) : undefined;
}
