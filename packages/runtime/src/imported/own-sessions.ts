import { type Draft, type HomeStore, type SessionInfo, TapeError } from '@tapedeck/tape';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';
import { originDraft } from './forgotten.ts';
import { type Origins, originOf } from './origins.ts';

/** Of which conversation sessions are sought, and under which name. */
interface Sought {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  readonly as: string | undefined;
  readonly origins: Origins;
}

/** The session beside which another one is made. */
export interface Beside {
  readonly session: string;
  /** It is of the same conversation, and goes on in another way; or it is another one, which has the name, or one like it. */
  readonly why: 'parted' | 'named' | 'alike';
}

/**
 * The sessions that one conversation has here: several where one of them went on here, or where files of it differ. The first
 * has the name of the conversation, unless something else has it.
 */
export class OwnSessions {
  readonly #store: HomeStore;
  readonly #sought: Sought;

  constructor(store: HomeStore, sought: Sought) {
    this.#store = store;
    this.#sought = sought;
  }

  /** Their names, in the order in which they were made. */
  all(): readonly string[] {
    const sessions: string[] = [];
    for (let one = this.#find(1); one !== undefined; one = this.#find(sessions.length + 1))
      sessions.push(one);
    return sessions;
  }

  /** The first name from the nth on that is free, behind one that was refused. */
  freeName(n: number, refused?: string): string {
    let isBehind = refused === undefined;
    for (let i = n; ; i += 1) {
      const name = this.#nameAt(i);
      if (isBehind && !this.#exists(name)) return name;
      isBehind ||= name === refused;
    }
  }

  /** What the nth one stands beside: the given one of the same conversation, or what has the name of the first. */
  besideOf(n: number, own: string | undefined): Beside | undefined {
    if (n > 1) return own === undefined ? undefined : { session: own, why: 'parted' };
    const other = this.#store.sessions.find(this.#nameAt(1))?.session;
    return other === undefined ? undefined : { session: other, why: 'named' };
  }

  /** Where the nth session comes from, as an event, with the time of what it inherits of its own conversation. */
  origin(n: number, timestamp?: string): Draft {
    const { plan, conversation } = this.#sought;
    const { key, kind } = conversation;
    const { format, session } = plan;
    // The lineage has its parent, which can be another one when the source has grown.
    const isMain = kind === 'main' && n === 1;
    const origin = { format, session, ...(!isMain && { conversation: n === 1 ? key : `${key}#${n}` }) };
    return originDraft(origin, timestamp);
  }

  /**
   * Why nothing is written where none of them is here: a person deleted the first one, or the session of which it is part. Who names
   * a session of its own (`as`) takes it again.
   * @param there those that are here
   * @param above why that session takes nothing
   */
  refusal<Above extends Error>(
    there: readonly string[],
    above: Above | undefined,
  ): Above | TapeError | undefined {
    const { conversation, origins, as } = this.#sought;
    if (there.length > 0 || as !== undefined) return undefined;
    if (above !== undefined) return above;
    const deleted = origins.findDeleted(JSON.stringify(this.origin(1).payload));
    if (deleted === undefined) return undefined;
    return deletedHere(conversation.name, deleted);
  }

  /** The nth one, by its name or, if that was changed, by where it comes from. */
  #find(n: number): string | undefined {
    const { as, origins } = this.#sought;
    const expected = JSON.stringify(this.origin(n).payload);
    for (let i = n; this.#exists(this.#nameAt(i)); i += 1) {
      const name = this.#nameAt(i);
      if (originOf(this.#store, name) === expected) return name;
      if (name === as)
        throw new TapeError(
          'TAPE_EXISTS',
          `cannot import into '${name}': it is not an import of this transcript`,
          {
            data: { session: name, transcript: true },
          },
        );
    }
    return as === undefined ? origins.find(expected)?.session : undefined;
  }

  #nameAt(i: number): string {
    const { plan, conversation, as } = this.#sought;
    const isOfMain = as !== undefined && conversation.name.startsWith(plan.session);
    const base = isOfMain ? `${as}${conversation.name.slice(plan.session.length)}` : conversation.name;
    return i === 1 ? base : `${base}-${i}`;
  }

  #exists(session: string): boolean {
    return this.#store.sessions.find(session) !== undefined;
  }
}

/** Why a session takes nothing that was deleted here, or purged. */
export function deletedHere(
  session: string,
  { id, lifecycle }: Pick<SessionInfo, 'id' | 'lifecycle'>,
): TapeError {
  const what = lifecycle === 'purged' ? 'purged' : 'deleted';
  return new TapeError('TAPE_ARCHIVED', `cannot import into '${session}': it was ${what} here`, {
    data: { session, id, lifecycle, transcript: true },
  });
}
