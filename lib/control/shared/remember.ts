import { BoundedMap } from './bounded-map';

/**
 * Memoizes a pure function of a string, keeping its latest results: the documents of the run table are read far more often than they
 * change. Results are shared, so callers must not modify them.
 * @param most number of results to keep; the oldest is dropped first
 */
export function remember<T>(read: (text: string) => T, most = 500): Remembered<T> {
  const known = new BoundedMap<T>(most);
  const keep = (text: string, made: T) => {
    known.set(text, made, text.length);
    return made;
  };
  return Object.assign((text: string) => known.get(text) ?? keep(text, read(text)), { keep });
}

/** A memoized function. */
export interface Remembered<T> {
  (text: string): T;
  /** Stores a known result, because the text was just written from it. */
  keep(text: string, made: T): T;
}
