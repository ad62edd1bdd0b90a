import { type Rewound, rewindTape, unrewindTape } from '../history/rewind.ts';
import type { Point } from '../tape/point.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { assertOptions, fieldsOf, type RewindOptions, type UnrewindOptions } from './options.ts';
import type { History } from './store.ts';

/** Makes `store.history`. */
export function historyOn(at: Connection): InProcess<History> {
  const { db, writer } = at;
  return {
    rewind(ref: Ref, to: Point, o: RewindOptions = {}): Rewound {
      assertOptions(o, fieldsOf['history.rewind'], 'rewind', at.named(ref));
      return db.write(() => {
        const tape = at.need(ref);
        return rewindTape(writer, tape, { to, epoch: at.epoch(tape, o.lease), mode: o.mode });
      });
    },

    unrewind(ref: Ref, o: UnrewindOptions = {}): Rewound {
      assertOptions(o, fieldsOf['history.unrewind'], 'unrewind', at.named(ref));
      return db.write(() => {
        const tape = at.need(ref);
        return unrewindTape(writer, tape, { epoch: at.epoch(tape, o.lease), rewind: o.rewind });
      });
    },
  };
}
