/**
 * JSON text in the format of Python's `json.dumps`: `, ` and `: ` as separators, `\uXXXX` for everything but printable ASCII, keys in the
 * order of the file. Hyperparameters of the toolkit contract must be byte for byte equal to those of the SageMaker Python SDK.
 */
export function pythonJson(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return asciiString(value);
  if (typeof value === 'number') return pythonNumber(value);
  if (typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  const entries = Object.entries(value as object).map(([key, item]) => `${asciiString(key)}: ${pythonJson(item)}`);
  return `{${entries.join(', ')}}`;
}

function asciiString(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Format of Python's repr: exponents below -4 or from 16 on, with at least two digits. */
function pythonNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (Number.isInteger(value) && Math.abs(value) < 1e16) return String(value);
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 16) return String(value);
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}
