import type { Draft } from '../entry/entry.ts';
import { appendStaged, publishTapes, type StageInit, stageTape } from '../session/stage.ts';
import { type Appended, receipt } from '../tape/append.ts';
import { infoOf, type SessionInfo } from '../tape/info.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { keyedDrafts } from './keys.ts';
import { assertOptions, fieldsOf } from './options.ts';
import type { Imports } from './store.ts';

/** Makes `store.imports`. */
export function importsOn(at: Connection): InProcess<Imports> {
  const { db, realm, writer } = at;
  return {
    stage(name: string, init: StageInit = {}): SessionInfo {
      assertOptions(init, fieldsOf['imports.stage'], 'stage session', name);
      return infoOf(
        db,
        db.write(() => stageTape(writer, realm, name, init)),
      );
    },

    append(id: string, batch: readonly Draft[]): Appended {
      const drafts = keyedDrafts(batch);
      return db.write(() => receipt(appendStaged(writer, id, drafts)));
    },

    publish(ids: readonly string[]): readonly SessionInfo[] {
      const tapes = db.writeThrough(() => publishTapes(writer, ids));
      at.drainOutbox();
      return tapes.map((tape) => infoOf(db, tape));
    },
  };
}
