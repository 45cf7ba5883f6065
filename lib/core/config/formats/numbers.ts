/** USD rounded to the cent. */
export const cents = (usd: number): number => Math.round(usd * 100) / 100;

/** Half the width of an 80 % interval of a normal distribution, in standard deviations. */
export const HALF_OF_80 = 1.2816;

/** A run has fewer steps than 10^12; longer numbers in names are dates, hashes or nonsense, and lose digits as doubles. */
const DIGITS = 12;
/** No training counts more steps: a larger number was not counted. */
export const MAX_STEP = 10 ** DIGITS - 1;

/** The step that decimal digits in a name stand for; undefined when they are none or too many. */
export const stepNumber = (digits: string | undefined): number | undefined =>
  digits !== undefined && digits.length <= DIGITS && /^\d+$/.test(digits) ? Number(digits) : undefined;

/** Largest time in epoch milliseconds: the year 2100, as far as a calendar date is made of it. */
export const MAX_TIME = 4.2e12;
