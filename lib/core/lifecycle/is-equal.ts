const NONE: readonly string[] = [];

/**
 * Whether two values have the same JSON form; a field that is undefined equals a missing field.
 * @param but top-level fields that may differ. @default none
 */
export function isEqual(a: unknown, b: unknown, but = NONE): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in left)
    if (left[key] !== right[key] && !but.includes(key) && !isEqual(left[key], right[key])) return false;
  for (const key in right) if (left[key] === undefined && right[key] !== undefined && !but.includes(key)) return false;
  return true;
}
