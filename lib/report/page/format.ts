export const UNKNOWN = '–';

const FORMATS = new Map<string, Intl.NumberFormat>();

/** The format with this many decimals, made once: making one takes fifty times as long as using it. */
function decimals(least: number, most: number): Intl.NumberFormat {
  const key = `${least} ${most}`;
  const format =
    FORMATS.get(key) ?? new Intl.NumberFormat('en-US', { minimumFractionDigits: least, maximumFractionDigits: most });
  FORMATS.set(key, format);
  return format;
}

/** Formats with thousands separators and at most `digits` decimals: 12,345.6. */
export function number(value: number | null | undefined, digits = 0): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return decimals(0, digits).format(value);
}

/** Enough decimals to distinguish losses or rates: 4 below 10, 1 below 1,000, otherwise none. */
export function precise(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  const size = Math.abs(value);
  return number(value, size < 10 ? 4 : size < 1000 ? 1 : 0);
}

/** US dollars; four decimals below one dollar, because small runs cost cents. */
export function usd(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  const digits = value !== 0 && Math.abs(value) < 1 ? 4 : 2;
  return `$${decimals(digits, digits).format(value)}`;
}

/** Rounded for estimates: whole dollars from 100 on. */
export const roughUsd = (value: number | null | undefined): string =>
  value !== null && value !== undefined && Math.abs(value) >= 100 ? `$${number(value)}` : usd(value);

/** A fraction as a percentage. */
export const percent = (share: number | null | undefined, digits = 1): string =>
  share === null || share === undefined ? UNKNOWN : `${number(100 * share, digits)} %`;

/** 3 d 4 h, 2 h 10 min, 4 min 20 s, 12.3 s, 8.1 ms: the two largest units. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN;
  if (seconds > 0 && seconds < 0.1) return `${number(1000 * seconds, 1)} ms`;
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  const units: [number, string][] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor((whole % 86_400) / 3600), 'h'],
    [Math.floor((whole % 3600) / 60), 'min'],
    [whole % 60, 's'],
  ];
  const first = units.findIndex(([count]) => count > 0);
  return units
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Binary units, one decimal: 1.5 GiB. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  const power = value < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(value) / 10));
  return `${number(value / 1024 ** power, power === 0 ? 0 : 1)} ${BYTE_UNITS[power]}`;
}

/** An ISO time as 2026-11-21 13:15:22 (UTC is stated once on the page). */
export function time(iso: string | null | undefined): string {
  if (!iso) return UNKNOWN;
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? UNKNOWN : at.toISOString().slice(0, 19).replace('T', ' ');
}

/** Short numbers for axes: 1.2k, 3.4M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${number(value / 1e9, 1)}B`;
  if (size >= 1e6) return `${number(value / 1e6, 1)}M`;
  if (size >= 1e4) return `${number(value / 1e3, 1)}k`;
  return number(value, size < 1 ? 4 : 2);
}

/** `tensorParallel` as `Tensor parallel`. */
export function words(key: string): string {
  const spaced = key.replace(/([a-z0-9])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** A dash for unknown values. */
export const orDash = <T extends number | string>(value: T | null | undefined, text: (known: T) => string): string =>
  value === null || value === undefined ? '-' : text(value);
