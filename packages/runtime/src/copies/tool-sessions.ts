import type { SessionFacts } from '../imported/session-facts.ts';

/** A session that continues an exported one, and the session of a tool from which it came. */
interface Continuing {
  readonly id: string;
  readonly source: string;
}

/** The conversations of a home, without subagents, by the sessions of tools from which they came. */
export class ToolSessions {
  readonly #mains = new Map<string, string>();
  /** Those that are not the main ones, of exports that were continued, too, each with its key. */
  readonly #branches = new Map<string, (readonly [id: string, conversation: string])[]>();
  /** What continues exports, and is a copy of none, by the sessions that were exported. */
  readonly #continuing = new Map<string, Continuing[]>();

  /** Takes note of one that is new here. What continues an export is the main conversation of no session of a tool. */
  add(id: string, source: string, facts: Pick<SessionFacts, 'origin' | 'continues'>): void {
    const { origin, continues } = facts;
    const conversation = origin?.conversation;
    if (conversation !== undefined)
      this.#branches.set(source, [...(this.#branches.get(source) ?? []), [id, String(conversation)]]);
    if (continues !== undefined)
      this.#continuing.set(continues, [...this.continuing(continues), { id, source }]);
    else if (conversation === undefined && !this.#mains.has(source)) this.#mains.set(source, id);
  }

  mainOf(source: string | undefined): string | undefined {
    return this.#mains.get(source ?? '');
  }

  /** Those beside the main one, by their ids, and their conversations. */
  branchesOf(source: string): readonly (readonly [id: string, conversation: string])[] {
    return this.#branches.get(source) ?? [];
  }

  /** The sessions that continue an exported one, by its id. */
  continuing(exported: string | undefined): readonly Continuing[] {
    return this.#continuing.get(exported ?? '') ?? [];
  }
}
