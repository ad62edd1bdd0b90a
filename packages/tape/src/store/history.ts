import { type Rewound, rewindTape, unrewindTape } from '../history/rewind.ts';
import type { Lease } from '../tape/lease.ts';
import { settleDead } from '../tape/leftovers.ts';
import type { Point } from '../tape/point.ts';
import type { Ref, TapeRow } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { assertOptions, fieldsOf, type RewindOptions, type UnrewindOptions } from './options.ts';
import type { History } from './store.ts';

/** Makes `store.history`. */
export function historyOn(at: Connection): InProcess<History> {
  const { db, writer } = at;

  /** The tape with what a run that died had saved, and the epoch to write it under. */
  function settled(tape: TapeRow, lease: Lease | undefined): { tape: TapeRow; epoch: number } {
    const epoch = at.epoch(tape, lease);
    return { tape: lease === undefined ? settleDead(writer, tape, { epoch }) : tape, epoch };
  }

  return {
    rewind(ref: Ref, to: Point, o: RewindOptions = {}): Rewound {
      assertOptions(o, fieldsOf['history.rewind'], 'rewind', at.named(ref));
      return db.write(() => {
        const { tape, epoch } = settled(at.need(ref), o.lease);
        return rewindTape(writer, tape, { to, epoch, mode: o.mode });
      });
    },

    unrewind(ref: Ref, o: UnrewindOptions = {}): Rewound {
      assertOptions(o, fieldsOf['history.unrewind'], 'unrewind', at.named(ref));
      return db.write(() => {
        const { tape, epoch } = settled(at.need(ref), o.lease);
        return unrewindTape(writer, tape, { epoch, rewind: o.rewind });
      });
    },
  };
}
