/**
 * The lines of a requirements file without comments, with continued lines joined.
 * https://pip.pypa.io/en/stable/reference/requirements-file-format/
 */
export const requirementLines = (text: string): string[] =>
  text
    .replace(/^(\uFEFF|\u00EF\u00BB\u00BF)/, '')
    .replace(/\\\r?\n/g, ' ')
    .split('\n')
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .filter((line) => line !== '');
