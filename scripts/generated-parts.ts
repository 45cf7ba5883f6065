/**
 * A page with its generated parts as they are now. Each stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.
 * @param parts what makes the text of each part, by name
 * @throws Error when the page has no place for a part
 */
export function withParts(page: string, text: string, parts: Readonly<Record<string, () => string>>): string {
  return Object.entries(parts).reduce((found, [name, make]) => {
    const [begin, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [found.indexOf(begin), found.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${page}: must contain ${begin} and ${end}`);
    return `${found.slice(0, from)}${begin}\n${make()}\n${found.slice(to)}`;
  }, text);
}
