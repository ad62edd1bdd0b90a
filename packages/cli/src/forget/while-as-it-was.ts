import type { Seq, SessionInfo } from '@tapedeck/tape';

/** What was found of sessions, each of which is read again only once it has more, or what it is compared with has. */
export class WhileAsItWas<T> {
  readonly #found = new Map<string, { readonly head: Seq; readonly other: unknown; readonly value: T }>();

  /** @param other what else the value depends on */
  of({ id, head }: Pick<SessionInfo, 'id' | 'head'>, other: unknown, find: () => T): T {
    const before = this.#found.get(id);
    if (before?.head === head && before.other === other) return before.value;
    const value = find();
    this.#found.set(id, { head, other, value });
    return value;
  }
}
