/**
 * A map that forgets its oldest entries beyond a number of entries, and beyond a number of characters of the texts from which they were
 * made: run files of users may be long, and a function has 512 MB.
 */
export class BoundedMap<T> {
  private readonly known = new Map<string, { value: T; characters: number }>();
  private characters = 0;

  constructor(
    private readonly most: number,
    private readonly mostCharacters = 16_000_000,
  ) {}

  get(key: string): T | undefined {
    return this.known.get(key)?.value;
  }

  set(key: string, value: T, characters: number): void {
    this.forget(key);
    this.known.set(key, { value, characters });
    this.characters += characters;
    while (this.known.size > 1 && (this.known.size > this.most || this.characters > this.mostCharacters))
      this.forget(this.known.keys().next().value as string);
  }

  private forget(key: string): void {
    this.characters -= this.known.get(key)?.characters ?? 0;
    this.known.delete(key);
  }
}

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
