import { type LiveQuery, type LiveRun, type LiveStream, liveRuns, saveChunks } from '../tape/chunks.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { assertOptions, fieldsOf } from './options.ts';
import type { Live } from './store.ts';

/** Makes `store.live`. */
export function liveOn(at: Connection): InProcess<Live> {
  const { db } = at;
  return {
    save(streams: readonly LiveStream[]): void {
      db.writeBehind(() => {
        for (const stream of streams) saveChunks(db, at.need(stream.session), stream);
      });
    },

    read(ref: Ref, query: LiveQuery = {}): readonly LiveRun[] {
      assertOptions(query, fieldsOf['live.read'], 'read live answers of', at.named(ref));
      return liveRuns(db, at.need(ref), query);
    },
  };
}
