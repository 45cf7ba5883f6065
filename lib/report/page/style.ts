/** Colours of the pages as CSS variables, so that one chart works in light and dark scheme. */
const LIGHT = {
  page: '#f7f7f5',
  card: '#ffffff',
  ink: '#1d1d1b',
  muted: '#5f5e59',
  rule: '#dededa',
  c1: '#2a78d6',
  c2: '#eb6834',
  c3: '#159a6c',
  c4: '#8a5cd0',
  c5: '#c98a00',
  c6: '#d5487f',
  c7: '#0e8ea8',
  c8: '#7a7a72',
  good: '#12803a',
  bad: '#cf3331',
  wait: '#b9b8b0',
  warn: '#a86b00',
};

const DARK: typeof LIGHT = {
  page: '#161615',
  card: '#1f1f1d',
  ink: '#f1f0ec',
  muted: '#b0aea6',
  rule: '#3c3b37',
  c1: '#5a9cf0',
  c2: '#f08255',
  c3: '#37b98a',
  c4: '#a98af0',
  c5: '#dfa52a',
  c6: '#ea7aa6',
  c7: '#38b3cc',
  c8: '#9c9b92',
  good: '#3fbd6b',
  bad: '#f26b66',
  wait: '#6a6961',
  warn: '#e0a84a',
};

export type ColorName = keyof typeof LIGHT;

/** Reference to a colour, for style attributes and charts. */
export const color = (name: ColorName): string => `var(--${name})`;

const SERIES: readonly ColorName[] = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'];

/** Colour of the n-th series, from 0; the colours repeat after eight. */
export const seriesColor = (n: number): string => color(SERIES[n % SERIES.length] ?? 'c1');

const variables = (scheme: typeof LIGHT): string =>
  Object.entries(scheme)
    .map(([name, value]) => `--${name}:${value}`)
    .join(';');

/** The colours as variables, for the scheme of the reader. */
export const COLOR_SCHEMES = `:root{color-scheme:light dark;${variables(LIGHT)}}
@media (prefers-color-scheme:dark){:root{${variables(DARK)}}}`;

/** Style sheet of the pages: system fonts, one column, scrollable wide tables, narrow charts below 640 px. */
export const STYLE = `
${COLOR_SCHEMES}
@media print{:root{color-scheme:light;${variables(LIGHT)}}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1.125rem;margin:0 0 .5rem}
p{margin:.25rem 0 .75rem}
.sub,.note,caption,figcaption{color:var(--muted);font-size:.875rem}
section,header{background:var(--card);border:1px solid var(--rule);border-radius:.5rem;padding:1rem;margin:0 0 1rem}
nav{margin:.75rem 0 0;font-size:.875rem;display:flex;flex-wrap:wrap;gap:.25rem 1rem}
a{color:var(--c1)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;margin:1rem 0 0;padding:0}
.tiles div{border-left:3px solid var(--rule);padding-left:.625rem;min-width:0}
.tiles dt{color:var(--muted);font-size:.8125rem}
.tiles dd{margin:0;font-size:1.125rem;font-weight:600;overflow-wrap:anywhere}
.tiles small{display:block;font-weight:400;font-size:.8125rem;color:var(--muted)}
.scroll{overflow-x:auto}.scroll+.scroll,.scroll+p:not(.note){margin-top:1rem}
table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:0 0 .375rem}
caption span{display:inline-block;max-width:min(58rem,calc(100vw - 3.5rem));position:sticky;left:0}
td small{display:block;color:var(--muted);font-weight:400}
th small{display:block;color:var(--muted);font-weight:400}
th,td{text-align:left;vertical-align:top;padding:.3125rem .75rem .3125rem 0;border-top:1px solid var(--rule)}
thead th{border-top:0;color:var(--muted);font-weight:600;white-space:nowrap}
tbody th{font-weight:600}
table.slim{width:auto;min-width:min(100%,36rem)}
tfoot th,tfoot td{font-weight:600;border-top:2px solid var(--rule)}
.num{text-align:right;white-space:nowrap}
.long{min-width:9rem;overflow-wrap:anywhere}
.fixed{white-space:nowrap}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.8125rem}
pre{overflow-x:auto;margin:.5rem 0;padding:.625rem;border:1px solid var(--rule);border-radius:.25rem}
figure{margin:.5rem 0 1rem}
figure svg{display:block;width:100%;height:auto}
figure .narrow{display:none}
@media (max-width:640px){figure .wide{display:none}figure .narrow{display:block}main{padding:.75rem .5rem 2rem}section,header{padding:.75rem}
.cards thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.cards,.cards tbody,.cards tr,.cards caption{display:block}.cards tr{border-top:1px solid var(--rule);padding:.5rem 0}
.cards th,.cards td{display:flex;border:0;padding:.0625rem 0;text-align:left;white-space:normal;min-width:0}
.cards td::before{content:attr(data-head);flex:none;width:7.5rem;color:var(--muted)}
.cards td span{min-width:0;overflow-wrap:anywhere}}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1rem;margin:0 0 .25rem;padding:0;font-size:.8125rem;color:var(--muted)}
.swatch{display:inline-block;width:.75rem;height:.75rem;border-radius:.125rem;margin-right:.375rem;vertical-align:-.0625rem;background:var(--swatch)}
.swatch.line{height:0;border-top:2px dashed var(--swatch);background:none;vertical-align:.25rem}
.swatch.mark{width:.5625rem;height:.5625rem;border-radius:0;transform:rotate(45deg);margin-right:.5rem}
.unknown{border-left:3px solid var(--warn);padding:.25rem 0 .25rem .625rem;margin:0}
.word{font-weight:600;color:var(--tone,inherit)}
details{margin:.5rem 0 0}
summary{cursor:pointer;font-size:.875rem}
footer{color:var(--muted);font-size:.8125rem}
`.trim();
