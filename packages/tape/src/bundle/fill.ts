import { rebuildBatches } from '../check/calls.ts';
import { rebuildConversation } from '../check/conversation.ts';
import { rebuildSpoken } from '../check/spoken.ts';
import { rebuildUsage } from '../check/usage.ts';
import { crashPoint } from '../crash-point.ts';
import type { Db } from '../db/db.ts';
import { blobHashes, storeBlobs } from '../entry/blob.ts';
import type { EntryKind } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { saveTouches, touchesOf } from '../entry/touch.ts';
import { addText, indexedTo, type SearchRow } from '../search/text-index.ts';
import type { Writer } from '../tape/append.ts';
import { isRunOpen, saveRun } from '../tape/open-run.ts';
import { tapeById } from '../tape/tape.ts';
import { badBundle } from './bundle.ts';
import { type Bundled, bytesBefore } from './records.ts';
import type { Quarantine } from './unpack.ts';

/**
 * Puts the content of an entry where it was missing, in the caller's transaction. False for content that does not have
 * the hash of the body.
 */
export function fillEntry(
  { db }: Writer,
  file: Quarantine,
  { bundled, tape, id }: { readonly bundled: Bundled; readonly tape: number; readonly id: number },
): boolean {
  const { seq, kind, name, at, body, salt, payload, meta } = bundled.entry;
  const own = db.get<{ body: string }>('SELECT lower(hex(body_hash)) AS body FROM entry WHERE id = @id', {
    id,
  });
  if (salt === null || payload === null || own?.body !== body)
    throw badBundle(file.name, bundled.at.number, `the content of position ${seq} does not have its hash`);
  db.run('UPDATE entry SET salt = unhex(@salt), payload = @payload, meta = @meta WHERE id = @id', {
    ...{ id, salt, payload, meta },
  });
  db.run('DELETE FROM absent WHERE tape_id = @tape AND seq = @seq', { tape, seq });
  crashPoint('bundle/filled');
  keepBytes(db, file, {
    bundled,
    id,
    hashes: payload.includes('"type":"blob"') ? blobHashes(parsed(payload)) : [],
  });
  const fields = {
    kind: kind as EntryKind,
    name: name ?? undefined,
    payload: parsed(payload),
    meta: parsed(meta),
  };
  saveTouches(db, tape, { seq }, touchesOf(fields));
  if (id <= indexedTo(db)) {
    const row: SearchRow = { id, tape_id: tape, seq, kind: kind as EntryKind, name, at, payload };
    addText(db, 'entry_fts', row);
  }
  return true;
}

const refersTo = 'INSERT INTO blob_ref (hash, entry_id) VALUES (@hash, @id) ON CONFLICT DO NOTHING';

/**
 * Stores the bytes before an entry, and that the entry needs them.
 * @throws TAPE_BAD_BUNDLE when bytes are missing, or no one needs them
 */
export function keepBytes(
  db: Db,
  file: Quarantine,
  {
    bundled,
    id,
    hashes,
  }: { readonly bundled: Bundled; readonly id: number; readonly hashes: readonly string[] },
): void {
  if (hashes.length === 0 && bundled.bytes.length === 0) return;
  const needed = new Set(hashes);
  for (const { hash, bytes, at } of bytesBefore(file, bundled)) {
    if (!needed.delete(hash)) throw badBundle(file.name, at.number, 'no entry needs the bytes');
    storeBlobs(db, [{ hash: Buffer.from(hash, 'hex'), bytes }]);
    db.run(refersTo, { hash: Buffer.from(hash, 'hex'), id });
  }
  // Bytes travel once: others are here since an earlier entry.
  for (const one of needed) {
    const hash = Buffer.from(one, 'hex');
    if (db.get('SELECT 1 FROM blob WHERE hash = @hash', { hash }) === undefined)
      throw badBundle(file.name, bundled.at.number, `the bytes ${one} are missing`);
    db.run(refersTo, { hash, id });
  }
}

/** Makes the rows beside a tape again, after entries got their content, in the caller's transaction. */
export function rebuildRows(db: Db, id: number): void {
  const tape = tapeById(db, id);
  const settled = rebuildBatches(db, tape);
  db.run('UPDATE tape SET settled_seq = @settled WHERE id = @id', { id, settled });
  rebuildUsage(db, tape);
  rebuildConversation(db, tape);
  rebuildSpoken(db, tape);
  saveRun(db, id, isRunOpen(db, id));
}
