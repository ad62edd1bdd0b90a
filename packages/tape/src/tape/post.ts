import { crashPoint } from '../crash-point.ts';
import { extractBlobs, storeBlobs } from '../entry/blob.ts';
import { encodeJson } from '../entry/json.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { InboxDraft } from '../inbox/inbox.ts';
import type { Writer } from './append.ts';
import type { TapeRow } from './tapes.ts';

/** Leaves an item, checked by the caller, for whoever owns the session; the same key with other content is refused. Returns its id. */
export function postItem({ db, sources }: Writer, tape: TapeRow, item: InboxDraft): string {
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
      `cannot post to '${tape.name}' under key ${quote(key)}: another item has it`,
      { data: { session: tape.name, key } },
    );
  }
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
