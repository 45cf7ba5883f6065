import { plainText } from '../../core/config/formats/plain-text';
import { Html, html, type Part } from './parts';
import { STYLE } from './style';

export interface PageProps {
  title: string;
  header: Part;
  sections: readonly Section[];
  /** Source of the data and time of retrieval. */
  footer: Part;
}

export interface Section {
  /** Anchor; letters and hyphens. */
  id: string;
  title: string;
  /** The section is left out without content. */
  body: Part;
}

/** Text of a section without data, instead of an empty chart. */
export const unknown = (what: string, why = ''): Html => html`<p class="unknown">${what}${why && `: ${why}`}</p>`;

/**
 * One self-contained page without scripts, external fonts or images. The content security policy in its head enforces this, even for names
 * that contain markup. It contains no character that changes the direction of text or is not visible.
 */
export function page({ title, header, sections: all, footer }: PageProps): string {
  const sections = all.filter(({ body }) => body);
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
<header>
${header}
<nav aria-label="Sections">${sections.map((s) => html`<a href="#${s.id}">${s.title}</a> `)}</nav>
</header>
${sections.map(sectionHtml)}
<footer>${footer}</footer>
</main>
</body>
</html>
`;
  return plainText(text);
}

const sectionHtml = ({ id, title, body }: Section): Html => html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}
</section>
`;
