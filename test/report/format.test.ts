import { expect, test } from 'vitest';
import { bytes, duration, number, percent, precise, short, time, usd, words } from '../../lib/report/page/format';

test.each([
  [0, '0 s'],
  [4.25, '4.25 s'],
  [12.34, '12.3 s'],
  [59.96, '60 s'],
  [61, '1 min 1 s'],
  [3600, '1 h'],
  [3661, '1 h 1 min'],
  [86_400 * 5, '5 d'],
  [86_400 + 3660, '1 d 1 h'],
  [null, '–'],
  [Number.NaN, '–'],
])('%s seconds read %s', (seconds, text) => expect(duration(seconds)).toBe(text));

test.each([
  [0, '$0.00'],
  [0.0123, '$0.0123'],
  [12, '$12.00'],
  [6509.6349, '$6,509.63'],
  [null, '–'],
])('%s dollars read %s', (value, text) => expect(usd(value)).toBe(text));

test.each([
  [0, '0 B'],
  [1023, '1,023 B'],
  [1536, '1.5 KiB'],
  [96_372_514_816, '89.8 GiB'],
  [undefined, '–'],
])('%s bytes read %s', (value, text) => expect(bytes(value)).toBe(text));

test.each([
  [2.06981, '2.0698'],
  [123.456, '123.5'],
  [6483.2, '6,483'],
])('%s reads %s where its size decides the decimals', (value, text) => expect(precise(value)).toBe(text));

test.each([
  [0.0001, '0.0001'],
  [950, '950'],
  [12_500, '12.5k'],
  [4_200_000, '4.2M'],
])('%s on an axis reads %s', (value, text) => expect(short(value)).toBe(text));

test('shares are per cent, unknown ones a dash', () => {
  expect([percent(0.754), percent(1), percent(null)]).toEqual(['75.4 %', '100 %', '–']);
});

test('times are UTC to the second; what is no time is a dash', () => {
  expect(time('2026-11-21T14:15:22.999+01:00')).toBe('2026-11-21 13:15:22');
  expect([time(null), time('soon'), number(undefined)]).toEqual(['–', '–', '–']);
});

test('keys become words', () => expect(words('tensorParallel')).toBe('Tensor parallel'));
