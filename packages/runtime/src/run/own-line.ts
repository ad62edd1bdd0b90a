import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { type Ancestry, ancestryOf, type Origin, originOf, type SessionFacts } from '../terms/terms.ts';

/** The settings and terms of a session and of its ancestors, which never change and are read once. */
export class OwnLine {
  readonly #store: TapeStore;
  #origin: Origin | undefined;
  #ancestors: readonly SessionFacts[] | undefined;

  constructor(store: TapeStore) {
    this.#store = store;
  }

  /** Takes the line of the parent, of which the session was just forked. */
  descendFrom(parent: Ancestry): void {
    this.#ancestors ??= parent;
  }

  /** @param info the session's row */
  async facts(info: SessionInfo): Promise<SessionFacts> {
    this.#origin ??= await originOf(this.#store, info);
    return { info, origin: this.#origin, above: async () => (await this.line(info)).slice(1) };
  }

  /** The facts of the session and of its ancestors. */
  async line(info: SessionInfo): Promise<Ancestry> {
    const facts = await this.facts(info);
    this.#ancestors ??= (await ancestryOf(this.#store, facts)).slice(1);
    return [facts, ...this.#ancestors];
  }
}
