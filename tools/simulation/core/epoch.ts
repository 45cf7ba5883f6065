import type { SimMs } from './clock';

/** Start of every scenario by the services' clock: 1 January 2027, an arbitrary date. */
export const EPOCH_MS = Date.UTC(2027, 0, 1);

/** A moment by the services' clock. */
export const dateAt = (at: SimMs): Date => new Date(EPOCH_MS + at);
