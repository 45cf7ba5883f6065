import type { SizePlan } from '../../core/admission';
import { textTable } from '../../core/config/formats/text-table';

const FITS = { fits: 'fits', tight: 'tight', oom: 'does not fit; not used' };
const rounded = (value: number | null, digits = 0) => (value === null ? '-' : value.toFixed(digits));

/** The sizes as a table. */
export const sizesText = (sizes: readonly SizePlan[]): string =>
  textTable(
    ['instances', 'memory', 'GiB per GPU', 's per step', 'hours', 'USD on demand'],
    sizes.map((s) => [
      String(s.instanceCount),
      FITS[s.fits],
      rounded(s.memoryGiB, 1),
      rounded(s.stepSeconds, 2),
      rounded(s.hours, 1),
      rounded(s.usd),
    ]),
  );
