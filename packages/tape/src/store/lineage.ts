import type { Beside, Db } from '../db/db.ts';
import { type Encoded, encodeDraft } from '../entry/encode.ts';
import type { Seq } from '../entry/entry.ts';
import { type Forked, forkTape } from '../fork/fork.ts';
import { broughtBy, type ForkRequest } from '../fork/request.ts';
import type { LineageLine } from '../lineage/line.ts';
import { type LinkReceipt, linkTape, unlinkTape } from '../lineage/link.ts';
import type { LinkRequest } from '../lineage/outbox.ts';
import { type LineageQuery, readLineage } from '../lineage/read.ts';
import type { Collected } from '../merge/collect.ts';
import { mergeTapes } from '../merge/merge.ts';
import { collect, type MergeDraft, type MergeRequest, planMerge } from '../merge/plan.ts';
import type { Merged } from '../merge/receipt.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { keyedDrafts } from './keys.ts';
import { assertArgument, assertOptions, fieldsOf, type WriteOptions } from './options.ts';
import { type ForkPreview, type MergePreview, previewFork, previewMerge } from './preview.ts';
import type { Lineage } from './store.ts';

/** `store.lineage` of a store in this process. */
export interface LineageInProcess extends Omit<InProcess<Lineage>, 'merge'> {
  /** See `Lineage.merge`. */
  readonly merge: {
    (child: Ref, request?: MergeRequest, o?: WriteOptions): Merged;
    (drafts: readonly MergeDraft[], o?: WriteOptions): readonly Merged[];
  };
}

/** Reads lines of the lineage, page by page. */
export function* linesOn(at: Connection, query: LineageQuery = {}): Generator<LineageLine> {
  assertOptions(query, fieldsOf['lineage.read'], 'read the lineage');
  const { session, ...rest } = query;
  const tape = session === undefined ? undefined : at.need(session).id;
  yield* readLineage(at.db, { ...rest, tape });
}

/** Makes `store.lineage`. */
export function lineageOn(at: Connection): LineageInProcess {
  const { db, realm, writer } = at;

  function mergeAll(drafts: readonly MergeDraft[], o: WriteOptions): readonly Merged[] {
    for (const draft of drafts)
      assertOptions(draft, fieldsOf['lineage.merge'], 'merge', at.named(draft.child));
    assertOptions(o, fieldsOf.write, 'merge');
    for (;;) {
      const planned = drafts.map((draft) => ({ draft, plan: planMerge(db, realm, draft) }));
      const merged = db.writeThrough(() => mergeTapes(writer, planned, o.lease));
      if (merged === undefined) continue; // A child changed after it was read.
      const graph = at.drainOutbox();
      return merged.map((receipt) => ({ ...receipt, ...graph }));
    }
  }

  function merge(child: Ref, request?: MergeRequest, o?: WriteOptions): Merged;
  function merge(drafts: readonly MergeDraft[], o?: WriteOptions): readonly Merged[];
  function merge(
    what: Ref | readonly MergeDraft[],
    second: MergeRequest | WriteOptions = {},
    third: WriteOptions = {},
  ): Merged | readonly Merged[] {
    if (typeof what !== 'string') {
      assertArgument(what, 'list', 'merge', 'the children');
      return mergeAll(what, second as WriteOptions);
    }
    const [merged] = mergeAll([{ ...(second as MergeRequest), child: what }], third);
    if (merged === undefined) throw new TypeError('a merge of one child has one receipt');
    return merged;
  }

  return {
    read: (query?: LineageQuery) => linesOn(at, query),

    fork(
      parent: Ref,
      request: ForkRequest = {},
      beside: (forked: Forked) => Beside | undefined = () => undefined,
    ): Forked {
      checkFork(at.named(parent), request);
      const brought = encodedOf(request);
      const forked = db.writeThrough(() => {
        const made = forkTape(writer, at.need(parent), request, brought);
        const statement = made.repeated ? undefined : beside(made);
        if (statement !== undefined) runBeside(db, statement);
        return made;
      });
      return { ...forked, ...at.drainOutbox() };
    },

    previewFork(parent: Ref, request: ForkRequest = {}): ForkPreview {
      checkFork(at.named(parent), request);
      const brought = encodedOf(request);
      return db.read(() => previewFork(writer, at.need(parent), request, brought));
    },

    merge,

    previewMerge(child: Ref, request: MergeRequest = {}): MergePreview {
      assertOptions(request, fieldsOf['lineage.merge'], 'merge', at.named(child));
      return db.read(() => previewMerge(writer, realm, { ...request, child }));
    },

    collect(child: Ref, range?: readonly [Seq, Seq]): Collected {
      return collect(db, at.need(child), range);
    },

    link(child: Ref, parent: Ref | null, request: LinkRequest = {}): LinkReceipt {
      assertOptions(request, fieldsOf['lineage.link'], 'link', at.named(child));
      const linked = db.writeThrough(() =>
        linkTape(writer, at.need(child), { ...request, parent: parent === null ? null : at.need(parent) }),
      );
      return { ...linked, ...at.drainOutbox() };
    },

    unlink(child: Ref): LinkReceipt {
      const linked = db.writeThrough(() => unlinkTape(writer, at.need(child)));
      return { ...linked, ...at.drainOutbox() };
    },
  };
}

function runBeside(db: Db, statement: Beside): void {
  if (db.runBeside === undefined)
    throw new TypeError('a database in a file has no other tables: nothing is committed beside a fork');
  db.runBeside(statement);
}

/** Refuses a request with a field that does not exist, or a value that a field cannot have. */
function checkFork(parent: () => string, request: ForkRequest): void {
  assertOptions(request, fieldsOf['lineage.fork'], 'fork', parent);
  const { done, intention } = request;
  if (intention !== undefined) assertOptions(intention, fieldsOf.intention, 'fork', parent);
  if (done !== undefined) assertOptions(done, fieldsOf.done, 'fork', parent);
}

/** The entries that a request brings, with their keys, as `append` has them. Most of the work is done before the lock is taken. */
function encodedOf(request: ForkRequest): readonly Encoded[] {
  return keyedDrafts(broughtBy(request)).map(encodeDraft);
}
