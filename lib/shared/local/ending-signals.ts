/** Ctrl-C, a request to end, and the end of the terminal or of the connection to it. */
export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
