import { isObject,                            } from '../entry/json.js';
import { parsed } from '../entry/parsed.js';
import { assistantText } from '../merge/answer.js';
                                              
import { summarizerKind } from '../tape/info.js';
                                               

/**
 * Whether a compaction has another summary than the answers of the session in which it was written give. Not known, and
 * so false, where one of them was erased, or could not be stored.
 */
export function isOtherSummary(db    , tape         , { state }            )          {
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
function answersOf(db    , { id }         , { id: ulid }            )                                {
  if (typeof ulid !== 'string') return undefined;
  const child = db.get                (
    'SELECT id FROM tape WHERE ulid = @ulid AND parent_id = @id AND kind = @kind',
    { ulid, id, kind: summarizerKind },
  );
  if (child === undefined) return undefined;
  const rows = db.all                                                 (
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
function textsOf(answers                   , type        )                    {
  const last = answers.slice(-1);
  return type === 'chunked' ? answers.map((_, n) => answers.slice(n).join('\n\n')) : last;
}

/** The files at the end of a summary. */
function tagOf(name        , paths                 )         {
  if (paths.length === 0) return '';
  const lines = paths.map((path) =>
    /[<>\p{Cc}]/u.test(String(path)) ? JSON.stringify(path).replaceAll('<', '\\u003c') : String(path),
  );
  return `<${name}>\n${lines.join('\n')}\n</${name}>`;
}
