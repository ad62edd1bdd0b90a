import { crashPoint } from '../crash-point.ts';
import { extractBlobs, storeBlobs } from '../entry/blob.ts';
import type { Draft } from '../entry/entry.ts';
import { encodeJson, type Json } from '../entry/json.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { Writer } from './append.ts';
import { assertActive, assertKept, type TapeRow } from './tape.ts';

/**
 * Inbox items that only a run can process; other owners keep them in the inbox. `input` starts or steers a
 * run, `answer` answers a call that waits for a person or a client, `abort` aborts the run of the owner that
 * it names.
 */
export type RunItem =
  | { readonly type: 'input'; readonly drafts: readonly Draft[] }
  | { readonly type: 'answer'; readonly toolCallId: string; readonly answer: Json }
  | { readonly type: 'abort'; readonly owner: string; readonly reason: string };

/** An item to post to a session's inbox. */
export interface Posting<Body> {
  readonly body: Body;
  /** The queue mode of input to a run; plain writes use `queue`. */
  readonly mode?: string;
  /** Who posted: `cli`, `user`, `agent`, `timer`, … */
  readonly source?: string;
  /** Idempotency key: posting it twice makes one item. */
  readonly key?: string;
}

/** Types of items that start a run of an idle session, with the verb for error messages. */
const startsRun: Readonly<Record<string, string>> = { input: 'send to', answer: 'answer a call of' };

/**
 * Posts an item to a session's inbox, after the caller has checked it; returns its id.
 * @throws TAPE_KEY_CONFLICT when the key has other content; TAPE_ARCHIVED when the item would start a run
 */
export function postItem(
  { db, sources }: Writer,
  tape: TapeRow,
  item: Posting<{ readonly type: string }>,
): string {
  const id = sources.newId();
  const key = item.key ?? id;
  const { payload, blobs } = extractBlobs(item.body);
  const body = encodeJson(payload, 'an inbox item');
  const before = db.get<{ ulid: string; body: string }>(
    'SELECT ulid, body FROM inbox WHERE tape_id = @tape AND key = @key',
    { tape: tape.id, key },
  );
  if (before !== undefined) {
    if (before.body === body) return before.ulid;
    throw new TapeError(
      'TAPE_KEY_CONFLICT',
      `cannot post to '${tape.name}' under key ${quote(key)}: another item has this key`,
      { data: { session: tape.name, key } },
    );
  }
  const act = startsRun[item.body.type];
  assertKept(tape, 'post to');
  if (act !== undefined) assertActive({ session: tape.name, id: tape.ulid, lifecycle: tape.lifecycle }, act);
  storeBlobs(db, blobs);
  db.run(
    `INSERT INTO inbox (ulid, tape_id, mode, source, key, body, queued_at)
       VALUES (@id, @tape, @mode, @source, @key, @body, @now)`,
    {
      id,
      tape: tape.id,
      mode: item.mode ?? 'queue',
      source: item.source ?? 'user',
      key,
      body,
      now: sources.now(),
    },
  );
  crashPoint('inbox/posted');
  return id;
}
