import { readFileSync } from 'node:fs';
import path from 'node:path';

/** What a probe saw. */
export interface Observation {
  /** Whether the defect shows. */
  shows: boolean;
  /** What happened, as a sentence for the table. */
  saw: string;
}

/** Version 0.1.0 without the rules and with them, and the working tree with them. */
export const COLUMNS = ['before', 'now', 'thisVersion'] as const;
export type Column = (typeof COLUMNS)[number];

export interface Row extends Partial<Record<Column, Observation>> {
  finding: number;
  defect: string;
}

export interface Record010 {
  commit: string;
  /** Commit of the working tree that the last column was seen with. */
  thisCommit: string;
  recorded: string;
  rows: Row[];
}

/** Where the record lies. */
export const FILE = path.resolve(__dirname, '..', '..', 'docs', 'emulator-0.1.0.json');

/** What was seen of version 0.1.0. */
export const recorded = (): Record010 => JSON.parse(readFileSync(FILE, 'utf8')) as Record010;
