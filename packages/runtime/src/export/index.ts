/**
 * Sessions in the forms of other programs. `index.ts` chooses the form, `ui-message.ts`, `openai-chat.ts`, `markdown.ts`,
 * `session-jsonl.ts` and `nexus3.ts` write one each. `claude-code.ts` and `pi.ts` write transcripts from which these programs
 * continue: of the turns that `turns.ts` makes of entries, in the blocks of `anthropic-blocks.ts`, with the marks of `mark.ts`;
 * `transcript.ts` says with which id, and where the program looks for it. All read through the same store: `clean-store.ts`
 * gives large texts whole and takes secrets out, `contexts.ts` divides a session where its model began anew, and
 * `output-text.ts` makes a text of what a tool returned. A form is written in pieces while the tape is read. Reads only.
 * Imports `plan` for the marks, `logs`, `ui`, `stream`, `store-of` and `fields`.
 */
import type { Point, Redact, Secret } from '@tapedeck/tape';
import { secretsIn } from '@tapedeck/tape/internal';
import { assertFields, type Fields } from '../fields.ts';
import { type StoreSource, storeOf } from '../store-of.ts';
import { cleanStore } from './clean-store.ts';
import type { ExportSource } from './contexts.ts';
import type { SessionMetadata } from './session-jsonl.ts';
import { type Transcript, type TranscriptForm, transcriptFor, transcriptPath } from './transcript.ts';

export type { SessionMetadata } from './session-jsonl.ts';

/**
 * The form of an export. `ui-message`: a JSON array of `UIMessage`s of the AI SDK, one a line. `openai-chat`: a line of JSON
 * for each context that the model had, as files for fine-tuning have them. `markdown`: the conversation for a reader.
 * `session-jsonl`: a line of JSON for each message, result and compaction. `nexus3`: a saved session of NEXUS3, with what its
 * model has before it. `claude-code` and `pi`: a transcript from which these programs continue.
 */
export type ExportFormat = (typeof exportFormats)[number];

/** All forms, in the order of their names in the help. */
export const exportFormats = [
  'ui-message',
  'openai-chat',
  'markdown',
  'session-jsonl',
  'nexus3',
  'claude-code',
  'pi',
] as const;

/** In which form a session is written, and whether with its secrets. */
export interface ExportOptions {
  readonly format: ExportFormat;
  /** The last entry. Default: that of the session. */
  readonly at?: Point;
  /**
   * For `claude-code` and `pi` the directory in which the session continues. Default: the last one that the tape names, or
   * else that of the process.
   */
  readonly project?: string;
  /** Leaves secrets where they are. Default: each is replaced by `[secret NAME]`. */
  readonly raw?: boolean;
  /** Known secrets. Default: those of the environment, as for `StoreOptions.secrets`. */
  readonly secrets?: readonly Secret[];
  /** Further forms of secrets, as for `StoreOptions.redact`; those that are built in are always looked for. */
  readonly redact?: Redact;
}

/** What was written. */
export interface Exported {
  /** The name of the session. */
  readonly session: string;
  readonly id: string;
  readonly format: ExportFormat;
  /** How many messages it has, or lines for `openai-chat`; for `markdown` the entries that it shows. */
  readonly items: number;
  /** How many entries, files and titles had a secret that was replaced. */
  readonly withheld: number;
  /** For `session-jsonl` the content of `metadata.json`, which is beside the records. */
  readonly metadata?: SessionMetadata;
  /** For `claude-code` and `pi` what the session is there, and where the program looks for the file. */
  readonly transcript?: ExportedTranscript;
}

/** A transcript that was written for another program. */
export interface ExportedTranscript {
  /** The id of the session there: its old one, if it was imported from there and has not changed here. */
  readonly id: string;
  /** The directory in which it continues. */
  readonly project: string;
  /** Where the program looks for the file, by the environment of this process. */
  readonly path: string;
}

/**
 * Writes a session in the form of another program, in pieces. It is the conversation that a reader of the session sees:
 * with what a fork inherits and the results of merges, without what a rewind hides. The generator returns what was written.
 * @throws TAPE_NO_SESSION; SESSION_BAD_INPUT for a form that does not exist
 *
 * @example
 * ```ts
 * import { exportSession } from '@tapedeck/runtime';
 * import { assistant, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), assistant('Test, tag, publish.')]);
 * let text = '';
 * for await (const piece of exportSession(store, 'main', { format: 'openai-chat' })) text += piece;
 * console.log(JSON.parse(text).messages.length); // 2
 * ```
 */
export async function* exportSession(
  source: StoreSource,
  session: string,
  options: ExportOptions,
): AsyncGenerator<string, Exported> {
  const act = `export '${session}'`;
  assertFields(options, known, act);
  const store = storeOf(source, act);
  const { format, raw = false, secrets = secretsIn(process.env), redact = 'all', at, project } = options;
  const isTranscript = format === 'claude-code' || format === 'pi';
  const clean = cleanStore(store, raw ? undefined : { secrets, redact }, { isWhole: !isTranscript });
  const info = await clean.store.sessions.find(session);
  // `resolve` throws the error with the nearest names.
  if (info === undefined) return void (await store.entries.resolve(session, 'head')) as never;
  const head = at === undefined ? info.head : await store.entries.resolve(session, at);
  const cut = { store: clean.store, info: { ...info, head } };
  const about = { session: info.session, id: info.id, format };
  if (isTranscript) {
    const transcript = await transcriptFor(cut, { form: format, project });
    const write = await transcripts[format]();
    const items = yield* write(cut, transcript);
    const { id, project: directory } = transcript;
    const path = transcriptPath(format, transcript);
    return { ...about, items, withheld: clean.withheld(), transcript: { id, project: directory, path } };
  }
  const write = await forms[format]();
  const made = yield* write(cut);
  const { items, metadata } =
    typeof made === 'number' ? { items: made } : { items: made.messageCount, metadata: made };
  const written = { ...about, items, withheld: clean.withheld() };
  return metadata === undefined ? written : { ...written, metadata };
}

/** Writes a form, and returns how many items it has, or what says so. */
type Form = (source: ExportSource) => AsyncGenerator<string, number | SessionMetadata>;

/** Writes a transcript for another program, and returns how many messages it has. */
type WriteTranscript = (source: ExportSource, transcript: Transcript) => AsyncGenerator<string, number>;

/** Each form is loaded with its first use: one of them loads the AI SDK. */
const forms: Readonly<Record<Exclude<ExportFormat, TranscriptForm>, () => Promise<Form>>> = {
  'ui-message': async () => (await import('./ui-message.ts')).writeUiMessages,
  'openai-chat': async () => (await import('./openai-chat.ts')).writeOpenaiChat,
  markdown: async () => (await import('./markdown.ts')).writeMarkdown,
  'session-jsonl': async () => (await import('./session-jsonl.ts')).writeSessionJsonl,
  nexus3: async () => (await import('./nexus3.ts')).writeNexus3,
};

const transcripts: Readonly<Record<TranscriptForm, () => Promise<WriteTranscript>>> = {
  'claude-code': async () => (await import('./claude-code.ts')).writeClaudeCode,
  pi: async () => (await import('./pi.ts')).writePi,
};

const known: Fields<ExportOptions> = {
  format: exportFormats,
  at: true,
  project: 'text',
  raw: 'flag',
  secrets: true,
  redact: true,
};
