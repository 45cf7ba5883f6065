const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];

/**
 * Runs work that a person may interrupt: the first signal aborts it, and further ones change nothing, so that it can clean up.
 * @param onInterrupt called at the first signal
 * @param more signals beside Ctrl-C and the request to end
 */
export async function interruptible<T>(
  onInterrupt: () => void,
  work: (interrupted: AbortSignal) => Promise<T>,
  more: readonly NodeJS.Signals[] = [],
): Promise<T> {
  const controller = new AbortController();
  const onSignal = () => {
    if (controller.signal.aborted) return;
    onInterrupt();
    controller.abort(new Error('interrupted'));
  };
  const signals = [...SIGNALS, ...more];
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
  }
}
