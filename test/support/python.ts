import { execFileSync } from 'node:child_process';

/** The interpreter itself: a version manager's stand-in for it would start as often as it does, and take as long. */
export const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
