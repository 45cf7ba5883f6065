import type { IssueText } from './issue';

/** Value of `code.source` for a program that is in the image. */
export const CODE_IN_IMAGE = 'image';

/** Whether the code is one object in S3; a prefix is packed by the command line like a folder. */
export const isArchiveInS3 = (source: string): boolean => source.startsWith('s3://') && !source.endsWith('/');

/** Whether the code is a prefix in S3. */
export const isPrefixInS3 = (source: string): boolean => source.startsWith('s3://') && source.endsWith('/');

/** One file of a code folder, as it is packed. */
export interface CodeFile {
  /** Path below the folder, with forward slashes. */
  name: string;
  bytes: number;
  isExecutable: boolean;
}

/** An option or a variable that is true or false. */
export interface Switch {
  /** What makes it false: nothing (with `type=bool`, every text is true), an empty text, the text False, or `--no-` before its name. */
  off: 'never' | 'empty' | 'text' | 'negation';
  /** Whether it is true by default. */
  isOn: boolean;
}

/** What an option of a script takes, as argparse reads it. */
export interface ScriptOption {
  /** Its names, with their dashes; without them a positional argument. */
  names: readonly string[];
  /** Values behind its name; any = unknown. */
  takes: 'none' | 'one' | 'any';
  /** Whether its value is a number. @default - any text */
  type?: 'int' | 'float';
  /** The texts that its value may be. @default - any */
  choices?: readonly string[];
  /** Whether the script ends without it. */
  isRequired: boolean;
}

/** What was seen in a file of a code folder. */
export interface InspectedFile extends CodeFile {
  /** Number of the first line of a script that ends as on Windows. */
  windowsLine?: number;
  /** The first word of a script behind a byte order mark, if it is no comment: the shell does not find it. */
  markedWord?: string;
  /** Whether a script is in UTF-16, which neither the shell nor Python reads. */
  isUtf16?: boolean;
  /** A launcher that a script starts as on one host only: without the number or the rank of the hosts, or with the same rank on each. */
  oneHostLauncher?: string;
  /** The lines of a requirements file that may be installed, without comments. */
  requirements?: readonly string[];
  /** Options of a script without their dashes, fields that are true by default, and `$` with variables that it passes to bool(). */
  switches?: Readonly<Record<string, Switch>>;
  /** Every option that a script takes, and its positional arguments; absent where there may be others. */
  options?: readonly ScriptOption[];
  /** Whether a script ignores what is none of its options, instead of ending. */
  ignoresOthers?: true;
  /** How a script makes its ranks, if not from those of torchrun: it spawns them, names each host as the first, or reads an argument. */
  ownRanks?: 'spawn' | 'localhost' | 'argument';
  /** The folder that a call in a Python file names for its checkpoints. */
  savesTo?: string;
  /** Models that a script names as texts. */
  loads?: readonly string[];
  /** What looks like a secret in it. */
  secret?: string;
}

/** The local code folder of a run. */
export interface CodeFolder<File extends CodeFile = InspectedFile> {
  files: readonly File[];
  /** Why it cannot be packed. */
  problems: readonly IssueText[];
  /** Links that leave the repository and are left out; absent = none. */
  outside?: readonly string[];
}
