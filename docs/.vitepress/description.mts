const LONGEST = 200;

/** Text of Markdown: links and code lose their marks. */
const plain = (markdown: string): string =>
  markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<!--[\s\S]*?-->|<\/?a\b[^>]*>|[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();

const isProse = (block: string): boolean =>
  !/^(#|\||```|- |\d+\. |<|!\[|@|Date: )/.test(block) && plain(block).length > 0;

/** What search engines and link previews say of a page: the beginning of its first paragraph, else its title. */
export function descriptionOf(markdown: string, title: string): string {
  const first = markdown
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^```[\s\S]*?^```$/gm, '')
    .split(/\n\s*\n|(?<=^#.*)\n/m)
    .map((block) => block.trim())
    .find(isProse);
  const text = plain(first ?? `Slipway: ${title}`).replace(/:$/, '.');
  return text.length <= LONGEST ? text : `${text.slice(0, text.lastIndexOf(' ', LONGEST))} …`;
}
