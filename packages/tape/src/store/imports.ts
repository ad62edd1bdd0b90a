import { encodeDraft } from '../entry/encode.ts';
import type { Draft } from '../entry/entry.ts';
import { erasedAt, wipeFile } from '../history/wipe.ts';
import {
  discardSome,
  importsWithout,
  type UnfinishedImport,
  type UnfinishedQuery,
  unfinishedImports,
} from '../session/discard.ts';
import { appendStaged, publishTapes, type StageInit, stageTape } from '../session/stage.ts';
import { type Appended, receipt } from '../tape/append.ts';
import { infoOf, type SessionInfo } from '../tape/info.ts';
import { erasedBetween, homeHead } from '../tape/written.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { keyedDrafts } from './keys.ts';
import { assertArgument, assertOptions, type DiscardOptions, fieldsOf } from './options.ts';
import type { DiscardedImports, Imports } from './store.ts';

/** Makes `store.imports`. */
export function importsOn(at: Connection): InProcess<Imports> {
  const { db, realm, writer } = at;
  return {
    stage(name: string, init: StageInit = {}): SessionInfo {
      assertOptions(init, fieldsOf['imports.stage'], 'stage session', name);
      db.keepFewPages();
      return db.writeBehind(() => infoOf(db, stageTape(writer, realm, name, init)));
    },

    append(id: string, batch: readonly Draft[]): Appended {
      // Encodes before taking the lock, since that is most of the work.
      const drafts = keyedDrafts(batch).map(encodeDraft);
      // Nobody sees it yet: what publishes it waits for the disk, and with it for all that is before it in the log.
      return db.writeBehind(() => receipt(appendStaged(writer, id, drafts)));
    },

    publish(ids: readonly string[]): readonly SessionInfo[] {
      // The receipt is read before the commit: once that is done, nothing may refuse the act.
      const published = db.writeThrough(() => publishTapes(writer, ids).map((tape) => infoOf(db, tape)));
      at.drainOutbox();
      return published;
    },

    unfinished(query: UnfinishedQuery = {}): readonly UnfinishedImport[] {
      assertOptions(query, fieldsOf['imports.unfinished'], 'list', 'unfinished imports');
      return db.read(() => unfinishedImports(writer, realm, query));
    },

    discard(ids: readonly string[], o: DiscardOptions = {}): DiscardedImports {
      assertArgument(ids, 'texts', 'discard imports', 'the ids');
      assertOptions(o, fieldsOf['imports.discard'], 'discard', 'imports');
      const erased = discardAll(at, ids, o);
      // A server has files of its own, which may still have it.
      const isClean = db.hasFile && erasedAt(db) === undefined;
      return { erased, wiped: o.wipe !== false && (isClean || wipeFile(db)) };
    },
  };
}

/** Erases the content of staged sessions, in as many transactions as it needs, and returns how many entries lost it. */
function discardAll({ db, writer }: Connection, ids: readonly string[], o: DiscardOptions = {}): number {
  let erased = 0;
  for (const id of ids)
    for (let isWhole = false; !isWhole; ) {
      const some = db.writeAndWipe(() => discardSome(writer, id, o));
      erased += some.erased;
      isWhole = some.isWhole;
    }
  return erased;
}

/** Runs an act that erases content, and then erases what unfinished imports have of it. */
export function erasingImports<T>(at: Connection, act: () => T): T {
  const before = homeHead(at.db);
  const done = act();
  const behind = { after: before.entry, to: homeHead(at.db).entry };
  discardAll(
    at,
    at.db.read(() => importsWithout(at.writer, erasedBetween(at.db, behind))),
  );
  return done;
}
