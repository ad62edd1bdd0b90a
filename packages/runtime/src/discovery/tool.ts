import type { JsonObject } from '@tapedeck/tape';
import type { Retention } from '../import/claude-code/retention.ts';
import type { Role } from '../sources/index.ts';

export type { Retention } from '../import/claude-code/retention.ts';

/** Where the user's files are. */
export interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home directory of the user. */
  readonly home: string;
}

/** What the first records of a file say it is. */
export interface Identity {
  /** The tool's own id of what the file holds. */
  readonly session: string;
  readonly role: Role;
  /** The main session of a file that holds a part of it. */
  readonly main: string;
  /** The working directory. */
  readonly project?: string;
  /** The time of the first record that has one. */
  readonly first?: string;
}

/** A program whose transcripts can be recognised. */
export interface TranscriptTool {
  readonly name: string;
  readonly title: string;
  /** One of its files, in words: `a Codex rollout`. */
  readonly file: string;
  /** Whether its transcripts can be imported, and not only be recognised. */
  readonly isRead: boolean;
  /** The folders in which it keeps its transcripts, in this environment. */
  roots(place: Place): readonly string[];
  /** Whether a file in its folders is one of its transcripts, or belongs to one, by the path below the root. */
  has(path: string): boolean;
  /** What a file is; undefined for one of another program. `records`: the first ones; `path`: the whole path. */
  identify(records: readonly JsonObject[], path: string): Identity | undefined;
  /** How long it keeps its transcripts; absent for one that deletes none. */
  retention?(place: Place): Retention;
}

/** The value of an environment variable; an empty one says nothing. */
export function given(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

/** The first text that a field has in some records. */
export function firstText(records: readonly JsonObject[], field: string): string | undefined {
  for (const { [field]: value } of records) if (typeof value === 'string' && value !== '') return value;
  return undefined;
}

/** Whether a file has the ending of lines of JSON, compressed or not. */
export function isJsonLines(path: string): boolean {
  return /\.jsonl(?:\.(?:zst|gz))?$/.test(path);
}
