/** Times of preemption, in minutes: `queue.preemption` of the environment file. */
export interface PreemptionTimes {
  /** A run may ask for the room of others once it has waited this long. */
  afterMinutes: number;
  /** A job is left alone until it has trained this long: less would cost more in starts than it gives. */
  leastTrainingMinutes: number;
  /** A run that went back to the queue for another is not asked again for this long. */
  protectedMinutes: number;
}

/** Times of preemption where the environment file names none, in minutes. */
export const PREEMPTION_TIMES: PreemptionTimes = { afterMinutes: 15, leastTrainingMinutes: 60, protectedMinutes: 240 };
