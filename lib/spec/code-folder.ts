import type { IssueText } from './issue';

/** One file of a code folder, as it is packed. */
export interface CodeFile {
  /** Path below the folder, with forward slashes. */
  name: string;
  bytes: number;
  isExecutable: boolean;
}

/** What was seen in a file of a code folder. */
export interface InspectedFile extends CodeFile {
  /** Number of the first line of a script that ends as on Windows. */
  windowsLine?: number;
  /** What looks like a secret in it. */
  secret?: string;
}

/** The local code folder of a run. */
export interface CodeFolder {
  files: readonly InspectedFile[];
  /** Why it cannot be packed. */
  problems: readonly IssueText[];
}
