import { validationError } from './service-error';

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Absent on the last page. */
  nextToken?: string;
}

/** One page of a list, according to `MaxResults` and `NextToken` of the request. The token contains the start of the next page. */
export function page<T>(all: readonly T[], input: Record<string, unknown>, defaultSize: number): Page<T> {
  const size = Number(input.MaxResults ?? defaultSize);
  const start = input.NextToken === undefined ? 0 : decode(String(input.NextToken));
  const end = start + size;
  return { items: all.slice(start, end), nextToken: end < all.length ? encode(end) : undefined };
}

const encode = (start: number) => Buffer.from(`from:${start}`).toString('base64url');

function decode(token: string): number {
  const found = /^from:(\d+)$/.exec(Buffer.from(token, 'base64url').toString('utf8'));
  if (!found) throw validationError('The pagination token is not valid');
  return Number(found[1]);
}
