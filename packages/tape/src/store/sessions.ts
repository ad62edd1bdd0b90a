import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { wipeFile } from '../history/wipe.ts';
import { drainInPlaceOfOwner } from '../inbox/inbox.ts';
import type { GraphReceipt } from '../lineage/line.ts';
import { aliasTape, unaliasTape } from '../session/alias.ts';
import { tellsParent } from '../session/notify.ts';
import { type Purged, type PurgePreview, previewPurge, purgeTape } from '../session/purge.ts';
import { renameTape } from '../session/rename.ts';
import { ensureSession, type SessionChange, type SessionInit } from '../session/session.ts';
import { setLifecycle, setTask } from '../session/state.ts';
import { type CallsQuery, listCalls, type ModelCalls } from '../tape/calls.ts';
import { findNamed, findTape } from '../tape/find.ts';
import { besideOf, infoOf, type SessionInfo } from '../tape/info.ts';
import { settleDead } from '../tape/leftovers.ts';
import { countUnfinished, listTapes, type SessionQuery, type Unfinished } from '../tape/listing.ts';
import { assertKept, type Lifecycle, type Ref, type TapeRow, type Task, tapeById } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import { erasingImports } from './imports.ts';
import type { InProcess } from './in-process.ts';
import { assertArgument, assertOptions, fieldsOf, type WriteOptions } from './options.ts';
import type { Sessions } from './store.ts';

/** Makes `store.sessions`. */
export function sessionsOn(at: Connection): InProcess<Sessions> {
  const { db, realm, writer } = at;

  function changed(
    before: TapeRow,
    { ref, change, lease }: { readonly ref: Ref; readonly change: SessionChange } & WriteOptions,
  ): TapeRow {
    let tape = before;
    // A status that is present but undefined is a mistake of the caller, which `assertStatus` reports.
    if ('lifecycle' in change) {
      const lifecycle = change.lifecycle as Lifecycle;
      const ends = lifecycle === 'archived' || lifecycle === 'destroyed';
      const epoch = lease !== undefined || ends ? at.epoch(tape, lease) : tape.epoch;
      // Nothing runs an archived session, which would record what was saved of its answer.
      if (lease === undefined && ends && tape.lifecycle === 'active')
        tape = settleDead(writer, tape, { epoch });
      tape = setLifecycle(writer, tape, { lifecycle, epoch });
    }
    if ('task' in change)
      tape = setTask(writer, tape, { task: change.task as Task, epoch: at.epoch(tape, lease) });
    if (change.name !== undefined || change.alias !== undefined || change.unalias !== undefined)
      assertKept(tape, 'rename');
    // A name that is taken away and given again gets its new reason.
    if (change.unalias !== undefined) unaliasTape(writer, realm, tape, change.unalias);
    if (change.alias !== undefined) aliasTape(writer, realm, tape, change.alias);
    if (change.name !== undefined) {
      const epoch = at.epoch(tape, lease);
      if (lease === undefined) tape = settleDead(writer, tape, { epoch });
      tape = renameTape(writer, realm, tape, { name: change.name, by: ref, epoch });
    }
    return tape;
  }

  /** Appends the message that a child has ended to the tape of its parent, unless a process writes the parent. */
  function appendNews({ parent_id }: TapeRow): void {
    if (parent_id === null) return;
    try {
      db.writeThrough(() => drainInPlaceOfOwner(writer, realm, tapeById(db, parent_id)));
    } catch (error) {
      // The end is recorded, and the message with it: the next open for writing appends it.
      if (!(error instanceof TapeError)) throw error;
    }
  }

  return {
    open(name: string, init: SessionInit = {}): SessionInfo & GraphReceipt & { readonly created: boolean } {
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

    find(ref: Ref): SessionInfo | undefined {
      const tape = findTape(db, realm, ref);
      return tape === undefined ? undefined : infoOf(db, tape);
    },

    list(query: SessionQuery = {}): readonly SessionInfo[] {
      assertOptions(query, fieldsOf['sessions.list'], 'list sessions');
      return listTapes(db, realm, query);
    },

    unfinished(ref: Ref, root: Ref = ref): Unfinished {
      return countUnfinished(db, { parent: at.need(ref).id, root: at.need(root).id });
    },

    calls(query: CallsQuery = {}): readonly ModelCalls[] {
      assertOptions(query, fieldsOf['sessions.calls'], 'add up the calls of sessions');
      const { session } = query;
      return listCalls(db, realm, {
        ...query,
        ...(session !== undefined && { session: at.need(session).ulid }),
      });
    },

    update(ref: Ref, change: SessionChange, o: WriteOptions = {}): SessionInfo & GraphReceipt {
      assertOptions(change, fieldsOf['sessions.update'], 'update', at.named(ref));
      for (const alias of [change.alias, change.unalias])
        if (alias !== undefined) assertOptions(alias, fieldsOf.alias, 'alias', at.named(ref));
      assertOptions(o, fieldsOf.write, 'update', at.named(ref));
      const { tape, info, isNews } = db.writeThrough(() => {
        // A change of the task touches nothing beside the row: what is there is read with the first question.
        const isTask = Object.keys(change).every((field) => field === 'task');
        const before = at.need(ref);
        const beside = isTask ? besideOf(db, before) : undefined;
        const tape = changed(before, { ref, change, ...o });
        const isNews = change.task !== undefined && tellsParent({ db }, tape, change.task);
        return { tape, info: infoOf(db, tape, beside), isNews };
      });
      if (isNews) appendNews(tape);
      return { ...info, ...at.drainOutbox() };
    },

    purge(ref: Ref, reason: string, o: WriteOptions = {}): Purged & GraphReceipt {
      assertOptions(o, fieldsOf.write, 'purge', at.named(ref));
      assertArgument(reason, 'text', 'purge', 'the reason');
      const { lease } = o;
      const purge = () => {
        const tape = at.need(ref);
        const epoch = at.epoch(tape, lease);
        return purgeTape(writer, tape, { reason, epoch, settles: lease === undefined });
      };
      const done = erasingImports(at, () => db.writeAndWipe(purge));
      crashPoint('purge/before-checkpoint');
      return { ...done, wiped: wipeFile(db), ...at.drainOutbox() };
    },

    previewPurge(ref: Ref): PurgePreview {
      return db.read(() => previewPurge(writer, at.need(ref)));
    },
  };
}
