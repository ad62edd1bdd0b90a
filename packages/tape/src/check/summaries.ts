import type { Db } from '../db/db.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { parsed } from '../entry/parsed.ts';
import { assistantText } from '../merge/answer.ts';
import { summarizerKind } from '../tape/info.ts';
import type { TapeRow } from '../tape/tape.ts';

/**
 * Whether a compaction has another summary than the answers of the session in which it was written give. Not known, and
 * so false, where one of them was erased, or could not be stored.
 */
export function isOtherSummary(db: Db, tape: TapeRow, { state }: JsonObject): boolean {
  if (!isObject(state) || !isObject(state.summarizer) || typeof state.summary !== 'string') return false;
  const { summary, compaction_type: type, read_files: read, modified_files: modified } = state;
  // Callers append compactions of their own; a run's has all of these.
  if (typeof type !== 'string' || !Array.isArray(read) || !Array.isArray(modified)) return false;
  const answers = answersOf(db, tape, state.summarizer);
  if (answers === undefined) return false;
  const tags = [tagOf('read-files', read), tagOf('modified-files', modified)].filter((tag) => tag !== '');
  return !textsOf(answers, type).some((text) => summary === [text, ...tags].join('\n\n'));
}

/** Returns the answers of a summarizer, in order; undefined when one of them is not known. */
function answersOf(db: Db, { id }: TapeRow, { id: ulid }: JsonObject): readonly string[] | undefined {
  if (typeof ulid !== 'string') return undefined;
  const child = db.get<{ id: number }>(
    'SELECT id FROM tape WHERE ulid = @ulid AND parent_id = @id AND kind = @kind',
    { ulid, id, kind: summarizerKind },
  );
  if (child === undefined) return undefined;
  const rows = db.all<{ payload: string | null; meta: string | null }>(
    `SELECT payload, meta FROM entry WHERE tape_id = @id AND kind = 'message' ORDER BY seq`,
    { id: child.id },
  );
  const messages = rows.map(({ payload, meta }) => ({ message: parsed(payload), meta: parsed(meta) }));
  const isUnknown = messages.some(
    ({ message, meta }) => !Array.isArray(message.content) || meta.content_left_out === true,
  );
  if (isUnknown) return undefined;
  const texts = messages.flatMap(({ message }) =>
    message.role === 'assistant' ? [assistantText(message).trim()] : [],
  );
  return texts.length === 0 ? undefined : texts;
}

/** The texts that answers can give: the last one; in pieces, the last ones together. */
function textsOf(answers: readonly string[], type: string): readonly string[] {
  const last = answers.slice(-1);
  return type === 'chunked' ? answers.map((_, n) => answers.slice(n).join('\n\n')) : last;
}

/** The files at the end of a summary. */
function tagOf(name: string, paths: readonly Json[]): string {
  if (paths.length === 0) return '';
  const lines = paths.map((path) =>
    /[<>\p{Cc}]/u.test(String(path)) ? JSON.stringify(path).replaceAll('<', '\\u003c') : String(path),
  );
  return `<${name}>\n${lines.join('\n')}\n</${name}>`;
}
