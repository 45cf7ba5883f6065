import type { SimMs } from './clock';

/** When every scenario starts, by the services' clock: 1 January 2027, a date without meaning. */
export const EPOCH_MS = Date.UTC(2027, 0, 1);

/** A moment by the services' clock. */
export const dateAt = (at: SimMs): Date => new Date(EPOCH_MS + at);
