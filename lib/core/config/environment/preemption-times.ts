/** Times of preemption, in minutes: `queue.preemption` of the environment file. */
export interface PreemptionTimes {
  /** A run may request the capacity of other runs once it has waited this long. */
  afterMinutes: number;
  /** A job is not preempted before it has trained this long: otherwise the cost of restarts would exceed the benefit. */
  leastTrainingMinutes: number;
  /** A run that was preempted is not preempted again for this long. */
  protectedMinutes: number;
}

/** Default times of preemption, in minutes. */
export const PREEMPTION_TIMES: PreemptionTimes = { afterMinutes: 15, leastTrainingMinutes: 60, protectedMinutes: 240 };
