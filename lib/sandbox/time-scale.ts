/** How fast the sandbox's clock runs where the real service lets one wait. */
export interface TimeScale {
  /** Seconds a job stays at least in Starting and in Downloading, which on SageMaker take minutes. */
  startingSeconds: number;
  downloadingSeconds: number;
  /** Seconds between SIGTERM and SIGKILL. SageMaker: 120. */
  stopGraceSeconds: number;
  /** Seconds of the wall clock that MaxRuntime, MaxWait, MaxPending and KeepAlive of so many seconds last: 1 is real time. */
  secondsPerLimitSecond: number;
}

/** Seconds of SageMaker's states in a sandbox, where nothing else is asked for. */
export const DEFAULT_TIME_SCALE: TimeScale = {
  startingSeconds: 0.3,
  downloadingSeconds: 0.1,
  stopGraceSeconds: 120,
  secondsPerLimitSecond: 1,
};
