import type { HomeStore } from '@tapedeck/tape';
import type { HomeHead } from '@tapedeck/tape/internal';
import type { ImportPlan } from '../plan/plan.ts';
import { bothOf } from './append-drafts.ts';
import { withExportHere } from './export-here.ts';
import { isCode, triesMax } from './overtaken.ts';
import { type ReconcileOptions, reconcileOnce } from './reconcile.ts';
import type { Reconciled } from './reconciled.ts';
import { Traces } from './traces.ts';
import { ChangedMeanwhile, lookedAt, unlessChanged } from './unless-changed.ts';

/** The writing of a plan, which begins anew as often as another process erases or writes something meanwhile that may be of it. */
export class Reconciling {
  readonly #store: HomeStore;
  readonly #plan: ImportPlan;
  readonly #options: ReconcileOptions;
  readonly #traces: Traces;
  /** What was written of each conversation before it began anew. */
  readonly #wrote = new Map<string, Reconciled>();
  /** How often a session was deleted meanwhile. */
  #deletions = 0;

  constructor(store: HomeStore, plan: ImportPlan, options: ReconcileOptions) {
    this.#store = store;
    this.#plan = withExportHere(store, plan);
    this.#options = options;
    this.#traces = new Traces(store, this.#plan);
  }

  /**
   * Writes what is missing; undefined where something of it was erased since a look at the home (`lookedAt`), of which nothing is
   * written then, or others have written of it, or deleted a session of it.
   */
  since(look: HomeHead): readonly Reconciled[] | undefined {
    const done = new Map<string, Reconciled>();
    try {
      const onWritten = (one: Reconciled) => done.set(one.conversation, one);
      const act = () => reconcileOnce(this.#store, this.#plan, this.#options, onWritten);
      return unlessChanged(this.#store, { since: look, concerns: this.#traces }, act).map((one) =>
        this.#together(one),
      );
    } catch (error) {
      // Begun anew, the import leaves alone what was deleted, and takes the others.
      if (isCode(error, 'TAPE_NO_SESSION') && this.#deletions < triesMax) this.#deletions += 1;
      else if (!(error instanceof ChangedMeanwhile)) throw error;
      for (const one of done.values()) this.#wrote.set(one.conversation, this.#together(one));
      this.#options.origins?.forget();
      return undefined;
    }
  }

  #together(one: Reconciled): Reconciled {
    const before = this.#wrote.get(one.conversation);
    if (one.refused !== undefined || before?.session !== one.session) return one;
    const { beside = one.beside } = before;
    const created = before.created || one.created;
    return { ...one, ...bothOf(before, one), created, ...(beside && { beside }) };
  }
}

/**
 * Makes the sessions of a home read as the conversations of a plan: creates those that are missing, parents first, appends
 * what is new to the others, and merges the subagents whose results came back. Each session appears, and changes, in one
 * transaction, by what its tape has: no reader sees a part of it, and an import that was killed, or ran twice at once, ends as
 * one that ran alone.
 *
 * A branch is forked where it leaves its parent, before or after the parent changed, so that what the parent has of it is
 * not written again. A session that went on here is not rewound: what its source has beyond the point where the two part
 * becomes a session beside it. One that is deleted or in use takes nothing, and says so in its receipt.
 * @throws TAPE_EXISTS when a session has the name of `as` that is no import of this source
 */
export function reconcile(
  store: HomeStore,
  plan: ImportPlan,
  options: ReconcileOptions = {},
): readonly Reconciled[] {
  const reconciling = new Reconciling(store, plan, options);
  for (;;) {
    const done = reconciling.since(lookedAt(store));
    if (done !== undefined) return done;
  }
}
