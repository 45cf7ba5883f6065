/**
 * Tag of an object that belongs to a checkpoint that was never committed. Set by reconcile when a run is over; the checkpoint
 * bucket's lifecycle rule filters on it, so that nothing else ever expires.
 */
export const LEFTOVER_TAG = { key: 'slipway', value: 'leftover' } as const;

/** Name of that lifecycle rule. */
export const LEFTOVER_RULE = 'leftovers';
