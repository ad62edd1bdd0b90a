import { type Group, join } from './group.ts';

/** What sessions say themselves: of which sessions of tools they are copies. */
export class NamedCopies {
  readonly #copies = new Map<string, Group>();
  readonly #sources = new Map<string, Set<string>>();

  add(source: string, id: string): void {
    join(this.#copies, source, { id, isMain: true });
    this.#sources.set(id, (this.#sources.get(id) ?? new Set()).add(source));
  }

  /** The sessions that name a session of a tool, by the id that this gave it. */
  of(source: string): Group | undefined {
    return this.#copies.get(source);
  }

  /** What a session names. */
  sourcesOf(id: string): readonly string[] {
    return [...(this.#sources.get(id) ?? [])];
  }

  /** A session has something new. */
  refresh(id: string): void {
    for (const source of this.sourcesOf(id)) this.of(source)?.refresh(id);
  }
}
