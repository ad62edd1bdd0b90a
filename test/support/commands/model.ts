import type { Draft, Entry, Lifecycle, Seq } from '@tapedeck/tape';
import { CopiedSession } from '../copying-model.ts';

interface MergedOnce {
  readonly child: CopiedSession;
  readonly seq: Seq;
  readonly to: Seq;
}

/** The drafts that were written under a key, to be written again. */
export interface Keyed {
  readonly session: CopiedSession;
  readonly key: string;
  readonly drafts: readonly Draft[];
  readonly from: Seq;
}

/** A home as it should be after the commands so far. It never looks into the store. */
export class Model {
  readonly sessions: CopiedSession[] = [];
  readonly keyed: Keyed[] = [];
  readonly #merges: MergedOnce[] = [];
  /** Which of an owner's positions are erased, and by which entry. */
  readonly #erased = new Map<CopiedSession, Map<Seq, Seq>>();
  readonly #lifecycles = new Map<CopiedSession, Lifecycle>();
  readonly #delivered = new Set<CopiedSession>();
  #n = 0;

  constructor() {
    const main = new CopiedSession('main');
    this.sessions.push(main);
    this.write(main, [{ kind: 'anchor', mark: 'anchor', name: 'session/start', payload: { state: {} } }]);
  }

  next(): number {
    this.#n += 1;
    return this.#n;
  }

  write(session: CopiedSession, drafts: readonly Draft[]): void {
    for (const draft of drafts) session.add(predicted(session, draft));
  }

  fork(
    name: string,
    from: { parent: CopiedSession; floor: Seq; base: Seq },
    structural: readonly string[],
  ): void {
    const child = new CopiedSession(name, from);
    this.sessions.push(child);
    this.write(
      child,
      structural.map((mark) => ({ kind: 'anchor', mark: 'anchor', name: mark, payload: {} })),
    );
  }

  children(parent: CopiedSession): string[] {
    return this.sessions.filter((session) => session.parent === parent).map(({ name }) => name);
  }

  /** The newest merge of a child that its parent still sees, and whether it is of the child's head. */
  lastMerge(
    child: CopiedSession,
    parent: CopiedSession,
  ): { readonly seq: Seq; readonly to: Seq; readonly same: boolean } | undefined {
    const visible = this.#merges.filter(
      (merge) => merge.child === child && parent.seen(parent.head).includes(merge.seq),
    );
    const same = visible.find(({ to }) => to === child.head);
    const last = same ?? visible.at(-1);
    return last === undefined ? undefined : { ...last, same: same !== undefined };
  }

  merge(child: CopiedSession, parent: CopiedSession): void {
    this.#merges.push({ child, seq: parent.head + 1, to: child.head });
    this.#delivered.add(child);
    this.write(parent, [
      { kind: 'anchor', mark: 'anchor', name: `merge/${child.name}`, payload: {} },
      { kind: 'message', payload: {}, meta: { source: 'merge' } },
    ]);
  }

  isDelivered(session: CopiedSession): boolean {
    return this.#delivered.has(session);
  }

  /** Which session wrote what another has at a position. */
  ownerOf(session: CopiedSession, seq: Seq): CopiedSession {
    return seq > session.base || session.parent === undefined ? session : this.ownerOf(session.parent, seq);
  }

  erase(owner: CopiedSession, seq: Seq, reason: string): void {
    const erased = this.#erased.get(owner) ?? new Map<Seq, Seq>();
    this.#erased.set(owner, erased.set(seq, owner.head + 1));
    this.write(owner, [{ kind: 'redaction', mark: 'redaction', ref: seq, payload: { seq, reason } }]);
  }

  erasedBy(owner: CopiedSession, seq: Seq): Seq | undefined {
    return this.#erased.get(owner)?.get(seq);
  }

  setLifecycle(session: CopiedSession, lifecycle: Lifecycle): void {
    this.#lifecycles.set(session, lifecycle);
  }

  lifecycle(session: CopiedSession): Lifecycle {
    return this.#lifecycles.get(session) ?? 'active';
  }

  /** All that a session has, as `comparable` writes it. */
  entries(session: CopiedSession): string[] {
    return session.all().map((entry) => {
      const erased = this.erasedBy(this.ownerOf(session, entry.seq), entry.seq) !== undefined;
      return comparable(erased ? { ...entry, payload: null } : entry);
    });
  }
}

/** The content of an entry, without the fields that the store sets: ids, times, hashes, and its own texts. */
export function comparable({ seq, kind, mark, name, ref, payload, meta, inherited }: Entry): string {
  const composed = /^(?:fork\/start|intention|merge\/)/.test(name ?? '') || meta.source === 'merge';
  const content = payload === null ? null : composed ? 'composed' : payload;
  return JSON.stringify([seq, kind, mark ?? null, name ?? null, ref ?? null, content, inherited]);
}

function predicted(session: CopiedSession, { kind, mark, name, ref, payload, meta }: Draft): Entry {
  return {
    session: session.name,
    tape: '',
    seq: session.head + 1,
    kind,
    ...(mark !== undefined && { mark }),
    ...(name !== undefined && { name }),
    ...(ref !== undefined && { ref }),
    payload: payload as Entry['payload'],
    meta: meta ?? {},
    at: 0,
    hash: '',
    inherited: false,
  };
}
