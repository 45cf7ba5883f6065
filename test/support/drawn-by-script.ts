import vm from 'node:vm';

/** What a browser shows of a page that the Python client wrote: its script run on a document that only remembers. */
export function drawnByScript(page: string): string {
  const sources = /<script id="slipway-sources"[^>]*>([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '';
  const script = /<\/script>\s*<script>([\s\S]*)<\/script>\s*<\/body>/.exec(page)?.[1] ?? '';
  let drawn = '';
  const document = {
    // No canvas: widths of text are estimated, as they are in Node.
    createElement: () => ({ getContext: () => null, style: {} }),
    getElementById: () => ({ textContent: sources }),
    open: () => undefined,
    write: (text: string) => {
      drawn += text;
    },
    close: () => undefined,
  };
  const context = vm.createContext({ document, console, setTimeout, clearTimeout, navigator: { userAgent: '' } });
  vm.runInContext(script, context);
  return drawn;
}
