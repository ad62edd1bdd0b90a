import type { JsonObject } from '@tapedeck/tape';
import type { JsonLine, JsonLines, RecordList } from '../lines/json-lines.ts';
import type { OpenEnd } from './open-end.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';
import type { TranscriptCounts } from './transcript.ts';

/** Where the user's files are. */
export interface Place {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The home directory of the user. */
  readonly home: string;
  /** Where the administrators of the machine keep settings of the tool; without it, where they do on this platform. */
  readonly managed?: string;
  /** The working directories in which the tool was started, which may have settings of it. */
  readonly projects?: readonly string[];
}

/** Where a file belongs in the conversation that it was found with. */
export type Role = 'main' | 'subagent' | 'part';

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

/** A file of a conversation, as the reader of its format gets it. */
export interface SourceFile extends Pick<Identity, 'session' | 'role'> {
  readonly path: string;
  /**
   * Its records, and what is wrong with its lines. One without a whole record is empty: it may be about to be written.
   * `each`, called with every record in its order while they are read, is the only way to have all contents of a large file
   * without reading it again.
   */
  lines(each?: (record: JsonLine) => void): Promise<JsonLines<RecordList>>;
  /** All of it, decompressed. */
  bytes(): Promise<Uint8Array>;
}

/** The files of one conversation as one plan. */
export interface SourcePlan extends ImportPlan {
  /** The `file` of the conversations that a file holds, by its path; a file that is not named brought no conversation. */
  readonly files: ReadonlyMap<string, string>;
}

/** How long a tool keeps a transcript that does not change any more, before it deletes it. */
export interface Retention {
  readonly days: number;
  /** The file of settings that says so; undefined for the default of the tool. */
  readonly file?: string;
  /** The working directory in which the tool has to be started for that, where it keeps them longer elsewhere. */
  readonly startedIn?: string;
  /** What is wrong with what it says: what the tool does with that differs from version to version. */
  readonly fault?: string;
}

/** What is known of the part of a file before its open end, when it has grown. */
export interface KnownEnd {
  /** The session and the conversation that grow, as the plan of the whole file had them. */
  readonly session: string;
  readonly key: string;
  readonly name: string;
  readonly state: JsonObject;
  /** Whether an id is one of those before the end; it may say so of one that is not, seldom. */
  readonly has: (id: string) => boolean;
  /** Whether something was erased in the home: a record that quotes what was said before the end may quote that. */
  readonly hasErased: () => boolean;
}

/** What follows the part of a conversation before an open end, and where the next reading can begin. */
export interface EndPlan {
  readonly conversation: ConversationPlan;
  /** What became of its records. */
  readonly counts: TranscriptCounts;
  readonly end: OpenEnd | undefined;
}

/** A program whose transcripts can be recognised, and with `plan` imported. */
export interface TranscriptTool {
  readonly name: string;
  readonly title: string;
  /** One of its files, in words: `a Codex rollout`. */
  readonly file: string;
  /** The folders in which it keeps its transcripts, in this environment. */
  roots(place: Place): readonly string[];
  /** Whether a file in its folders is one of its transcripts, or belongs to one, by the path below the root. */
  has(path: string): boolean;
  /**
   * What a file is; undefined for one of another program. `records`: the first ones, of which a first one over 16 MB has the
   * beginnings of its texts alone; `path`: the whole path.
   */
  identify(records: readonly JsonObject[], path: string): Identity | undefined;
  /** Whether a record is surely one of its transcripts, wherever it is met. */
  hasRecord?(record: JsonObject): boolean;
  /** What is wrong with a record of its own that is taken nevertheless, and what becomes of that. */
  faultIn?(record: JsonObject): string | undefined;
  /** The working directory that a record names: a session can leave the one in which it began. */
  directoryOf?(record: JsonObject): string | undefined;
  /** How long it keeps its transcripts; absent for one that deletes none. */
  retention?(place: Place): Retention;
  /** Files and folders where the other files of conversations may be; without it, each file is a whole conversation. */
  beside?(files: readonly (Identity & { readonly path: string })[]): readonly string[];
  /** Reads the files of one conversation, its main file first if it is there. */
  plan?(files: readonly SourceFile[]): Promise<SourcePlan>;
  /**
   * Reads the records of a main file from an open end on. Undefined where one of them is no plain continuation, so that the
   * whole conversation has to be read.
   */
  planEnd?(lines: RecordList, known: KnownEnd): EndPlan | undefined;
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
  return path.endsWith('.jsonl') || /\.jsonl\.(?:zst|gz)$/.test(path);
}
