import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type MarkdownRenderer } from 'vitepress';
import { descriptionOf } from './description.mts';
import { internalPlaces, internals, isInternal, sidebar } from './sidebar.mts';

const DOCS = path.resolve(import.meta.dirname, '..');

/** Where the sidebar of the internals stands. */
const INTERNAL_PLACES = internalPlaces();

/** Where a link of a page leads in the repository. */
const targetOf = (href: string, page: string): string =>
  path.resolve(DOCS, path.dirname(page), href.split('#')[0] ?? '');

/** A relative link to a file that the site does not have: code, schemas, run files. */
const isOfRepository = (href: string, page: string): boolean => {
  if (/^[a-z]+:|^#|^\//.test(href)) return false;
  const target = targetOf(href, page);
  return (
    existsSync(target) && (!target.startsWith(`${DOCS}${path.sep}`) || !/(\.md|\/)$/.test(href.split('#')[0] ?? ''))
  );
};

/** changelog.md includes the file of the repository's root, whose links start there. The site's name of a README is index. */
function hrefOnPage(href: string, page: string): string {
  if (/^[a-z]+:|^#/.test(href)) return href;
  const here = page === 'changelog.md' ? path.posix.relative('docs', href) : href;
  return isOfRepository(here, page) ? here : here.replace(/(^|\/)README\.md(?=#|$)/, '$1index.md');
}

/** Links to files of the repository become text, because the site is also read where the repository is not. */
function unlinkRepository(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('unlink-repository', (state) => {
    const page = state.env.relativePath as string;
    for (const { children } of state.tokens) {
      let inside = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const href = hrefOnPage(token.attrGet('href') ?? '', page);
          token.attrSet('href', href);
          inside = isOfRepository(href, page);
        }
        if (!inside || !token.type.startsWith('link_')) continue;
        if (token.type === 'link_close') inside = false;
        token.type = 'text';
        token.content = '';
        token.nesting = 0;
      }
    }
  });
}

/** Anchors are the only HTML of the pages: `<name>` in prose is text, and comments are marks of generators. */
function showTagsAsText(markdown: MarkdownRenderer): void {
  const shown = (content: string) =>
    /^<a id="[\w-]+">$|^<\/a>$/.test(content)
      ? content
      : markdown.utils.escapeHtml(content.replace(/<!--[\s\S]*?-->/g, '')).replaceAll('{{', '&#123;&#123;');
  markdown.renderer.rules.html_inline = (tokens, index) => shown(tokens[index]?.content ?? '');
  markdown.renderer.rules.html_block = (tokens, index) => shown(tokens[index]?.content ?? '').trim();
}

/** Drawings keep their size on a phone, where they scroll: their type stays readable. */
function markDrawings(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('mark-drawings', (state) => {
    for (const token of state.tokens.flatMap(({ children }) => children ?? []))
      if (token.type === 'image' && token.attrGet('src')?.endsWith('.svg')) token.attrJoin('class', 'drawing');
  });
}

/** Code that is longer than this breaks where its line ends; shorter code stays whole. */
const LONG_CODE = 20;

/** The heading of a table with more than four columns. */
const WIDE_TABLE = /^\|(?:[^|\n]*\|){5,}\n\|[ :|-]+\|$/m;

function markLongCode(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('mark-long-code', (state) => {
    for (const token of state.tokens.flatMap(({ children }) => children ?? []))
      if (token.type === 'code_inline' && token.content.length > LONG_CODE) token.attrJoin('class', 'long');
  });
}

function configure(markdown: MarkdownRenderer): void {
  unlinkRepository(markdown);
  showTagsAsText(markdown);
  markDrawings(markdown);
  markLongCode(markdown);
}

/** A slipway, with what is launched from it. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2a78d6"/><path d="M5 25 27 17v8z" fill="#fff"/><path d="M8 18 25 12l-2 5-12 4z" fill="#fff" opacity=".75"/></svg>';

/** Pages that the search leaves out: those for maintainers, and the history of changes, whose words are those of every other page. */
const isUnsearched = (page: string): boolean => isInternal(page) || page === 'changelog.md';

/** Weight of a result: a guide answers before a rule or a table of fields. Runs in the browser, so that it uses nothing outside of it. */
const boostDocument = (address: string): number => {
  if (address.includes('/guides/')) return 3;
  return /\/(rules|reference|runbooks)/.test(address) ? 0.7 : 1.5;
};

/** The documentation as a site: `npm run docs`. It needs no network, neither to build nor to read. */
export default defineConfig({
  title: 'Slipway',
  description: 'LLM training on Amazon SageMaker training jobs, as a CDK app',
  base: process.env.SLIPWAY_DOCS_BASE ?? '/',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  transformPageData: (page) => {
    const text = readFileSync(path.join(DOCS, page.filePath), 'utf8');
    return {
      description: descriptionOf(text, page.title),
      // A wide table takes the place of the outline.
      ...(WIDE_TABLE.test(text) && { frontmatter: { ...page.frontmatter, aside: false } }),
    };
  },
  cleanUrls: false,
  lastUpdated: false,
  rewrites: (id) => id.replace(/(^|\/)README\.md$/, '$1index.md'),
  markdown: { config: configure },
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        _render: (text, env, markdown) => (isUnsearched(env.relativePath) ? '' : markdown.render(text, env)),
        miniSearch: { searchOptions: { boostDocument } },
      },
    },
    nav: [
      { text: 'Platform', link: '/guides/first-deployment' },
      { text: 'Research', link: '/guides/quick-start' },
      { text: 'Run file', link: '/reference/run-file' },
      { text: 'Troubleshooting', link: '/guides/troubleshooting' },
      { text: 'Internals', link: '/architecture' },
    ],
    sidebar: Object.fromEntries([['/', sidebar()], ...INTERNAL_PLACES.map((place) => [place, internals()])]),
    outline: [2, 3],
  },
});
