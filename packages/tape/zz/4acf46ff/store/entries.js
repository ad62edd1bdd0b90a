import { crashPoint } from '../crash-point.js';
import { loadBlob, loadBlobRange } from '../entry/blob.js';
import {               encodeDraft } from '../entry/encode.js';
                                                           
import { hex } from '../entry/hash.js';
import { TapeError } from '../errors.js';
import {
  emptyLog,
  ownerOfSeq,
  previewRedaction,
                
                     
  redactEntry,
} from '../history/redact.js';
import {                                      searchEntries } from '../search/search.js';
import { searchBudget, updateIndex } from '../search/text-index.js';
import {                receipt, repeatedOnly, repetitions, writeEncoded } from '../tape/append.js';
import { dropChunks } from '../tape/chunks.js';
                                                  
import { settleDead } from '../tape/leftovers.js';
import {             resolvePoint } from '../tape/point.js';
import { readEntries } from '../tape/read.js';
                                           
                                                  
                                                 
import { keyedDrafts } from './keys.js';
import {
                     
  assertArgument,
  assertOptions,
                 
                  
  fieldsOf,
                    
} from './options.js';
                                          

/** Makes `store.entries`. */
export function entriesOn(at            )                     {
  const { db, realm, writer } = at;

  function appendTo(
    tape            ,
    drafts                    ,
    { lease, expectHead, settles }               ,
  )           {
    const repeated = repetitions(writer, tape, drafts);
    const before = repeatedOnly(tape, repeated);
    if (before !== undefined) return before;
    const isFree = lease === undefined && tape.is_leased === 0;
    const epoch = isFree ? tape.epoch + 1 : at.epoch(tape, lease);
    if (expectHead !== undefined && expectHead !== hex(tape.head_hash))
      throw new TapeError(
        'TAPE_STALE_HEAD',
        `cannot append to '${tape.name}': its head is now @${tape.head_seq}`,
        { data: { session: tape.name, head: tape.head_seq } },
      );
    if (drafts.length === 0) return receipt({ tape, seqs: [], added: 0 });
    const hasDead = lease === undefined && tape.is_live === 1;
    const now = hasDead ? settleDead(writer, tape, { epoch, but: settles }) : tape;
    return receipt(writeEncoded(writer, now, drafts, { epoch, repeated }));
  }

  return {
    append(ref     , batch                  , o                = {})           {
      assertOptions(o, fieldsOf['entries.append'], 'append to', at.named(ref));
      // Encodes before taking the lock, since that is most of the work.
      const drafts = keyedDrafts(batch, o.key).map(encodeDraft);
      if (drafts.length === 0 && o.settles === undefined)
        throw new TapeError('TAPE_BAD_ENTRY', 'cannot append: the batch is empty');
      return db.write(() => {
        const tape = at.head(ref);
        const appended = appendTo(tape, drafts, o);
        if (o.settles !== undefined) {
          crashPoint('settle/appended');
          dropChunks(db, tape, o.settles);
        }
        return appended;
      });
    },

    *read(ref     , given             = {})                  {
      assertOptions(given, fieldsOf['entries.read'], 'read', at.named(ref));
      const { since, ...query } = given;
      const tape = at.need(ref);
      const after = since === undefined ? 0 : resolvePoint(db, tape, since);
      yield* readEntries(db, tape, { ...query, from: Math.max(query.from ?? 1, after + 1) });
    },

    resolve(ref     , point       )      {
      return resolvePoint(db, at.need(ref), point);
    },

    blob(hash        , range            )             {
      assertArgument(hash, 'text', 'read a blob', 'the hash');
      if (range === undefined) return loadBlob(db, hash);
      assertOptions(range, fieldsOf['entries.blob'], 'read blob', hash);
      return loadBlobRange(db, hash, range);
    },

    search(query             )               {
      assertOptions(query, fieldsOf['entries.search'], 'search');
      assertArgument(query.text, 'text', 'search', 'text');
      if (!at.readonly) updateIndex(db, searchBudget(query));
      return db.read(() => searchEntries(db, realm, query));
    },

    redact(ref     , point       , reason        , o               = {})           {
      assertOptions(o, fieldsOf.write, 'redact an entry of', at.named(ref));
      const done = db.writeAndWipe(() => {
        const tape = at.need(ref);
        const seq = resolvePoint(db, tape, point);
        const owner = ownerOfSeq(writer, tape, seq);
        const epoch = at.epoch(owner, o.lease);
        return redactEntry(writer, owner, { seq, reason, epoch, settles: o.lease === undefined });
      });
      crashPoint('redact/before-checkpoint');
      return { ...done, logEmptied: emptyLog(db) };
    },

    previewRedact(ref     , point       )                {
      return db.read(() => {
        const tape = at.need(ref);
        const seq = resolvePoint(db, tape, point);
        return previewRedaction(writer, ownerOfSeq(writer, tape, seq), seq);
      });
    },
  };
}
