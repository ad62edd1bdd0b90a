import { TapeError } from '../errors.js';
import { drainInPlaceOfOwner } from '../inbox/inbox.js';
                                                       
import { aliasTape, unaliasTape } from '../session/alias.js';
import { tellsParent } from '../session/notify.js';
import {
  ensureSession,
                     
                   
  setLifecycle,
  setTask,
} from '../session/session.js';
import {                  listCalls,                 } from '../tape/calls.js';
import { findNamed, findTape } from '../tape/find.js';
import { infoOf, listTapes,                                     } from '../tape/info.js';
import { settleDead } from '../tape/leftovers.js';
import {                                                    tapeById } from '../tape/tape.js';
                                                  
                                                 
import { assertOptions, fieldsOf,                   } from './options.js';
                                           

/** Makes `store.sessions`. */
export function sessionsOn(at            )                      {
  const { db, realm, writer } = at;

  function changed(ref     , change               , { lease }              )          {
    let tape = at.need(ref);
    // A status that is present but undefined is a mistake of the caller, which `assertStatus` reports.
    if ('lifecycle' in change) {
      const lifecycle = change.lifecycle             ;
      const epoch = lease !== undefined || lifecycle === 'archived' ? at.epoch(tape, lease) : tape.epoch;
      // Nothing runs an archived session, which would record what was saved of its answer.
      if (lease === undefined && lifecycle === 'archived' && tape.lifecycle !== 'archived')
        tape = settleDead(writer, tape, { epoch });
      tape = setLifecycle(writer, tape, { lifecycle, epoch });
    }
    if ('task' in change)
      tape = setTask(writer, tape, { task: change.task        , epoch: at.epoch(tape, lease) });
    // A name that is taken away and given again gets its new reason.
    if (change.unalias !== undefined) unaliasTape(writer, realm, tape, change.unalias);
    if (change.alias !== undefined) aliasTape(writer, realm, tape, change.alias);
    return tape;
  }

  /** Appends the message that a child has ended to the tape of its parent, unless a process writes the parent. */
  function appendNews({ parent_id }         )       {
    if (parent_id === null) return;
    try {
      db.writeThrough(() => drainInPlaceOfOwner(writer, realm, tapeById(db, parent_id)));
    } catch (error) {
      // The end is recorded, and the message with it: the next open for writing appends it.
      if (!(error instanceof TapeError)) throw error;
    }
  }

  return {
    open(name        , init              = {})                                                             {
      assertOptions(init, fieldsOf['sessions.open'], 'open session', name);
      const existing = findNamed(db, realm, name);
      if (existing !== undefined && existing.lifecycle !== 'staging')
        return { ...infoOf(db, existing), created: false, ...at.graphReceipt() };
      // The receipt is read before the commit: once that is done, nothing may refuse the act.
      const { info, created } = db.writeThrough(() => {
        const { tape, created } = ensureSession(writer, realm, name, init);
        return { info: infoOf(db, tape), created };
      });
      return { ...info, created, ...(created ? at.drainOutbox() : at.graphReceipt()) };
    },

    find(ref     )                          {
      const tape = findTape(db, realm, ref);
      return tape === undefined ? undefined : infoOf(db, tape);
    },

    list(query               = {})                         {
      assertOptions(query, fieldsOf['sessions.list'], 'list sessions');
      return listTapes(db, realm, query);
    },

    calls(query             = {})                        {
      assertOptions(query, fieldsOf['sessions.calls'], 'add up the calls of sessions');
      const { session } = query;
      return listCalls(db, realm, {
        ...query,
        ...(session !== undefined && { session: at.need(session).ulid }),
      });
    },

    update(ref     , change               , o               = {})                             {
      assertOptions(change, fieldsOf['sessions.update'], 'update', at.named(ref));
      for (const alias of [change.alias, change.unalias])
        if (alias !== undefined) assertOptions(alias, fieldsOf.alias, 'alias', at.named(ref));
      assertOptions(o, fieldsOf.write, 'update', at.named(ref));
      const { tape, info, isNews } = db.writeThrough(() => {
        const tape = changed(ref, change, o);
        const isNews = change.task !== undefined && tellsParent({ db }, tape, change.task);
        return { tape, info: infoOf(db, tape), isNews };
      });
      if (isNews) appendNews(tape);
      return { ...info, ...at.drainOutbox() };
    },
  };
}
