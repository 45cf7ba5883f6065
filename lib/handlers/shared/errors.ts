/** A service error in one line: its name and what it says. */
export const describeError = (error: unknown): string => `${(error as Error).name}: ${(error as Error).message}`;
