import type { SessionFacts } from '../imported/session-facts.ts';
import type { Kin } from './kin.ts';

/** A session that continues an exported one, and the session of a tool from which it came. */
interface Continuing {
  readonly id: string;
  readonly source: string;
}

/** A session that begins behind a `/clear`. */
interface Cleared {
  readonly id: string;
  readonly kin: Kin;
}

/** The conversations of a home, without subagents, by the sessions of tools from which they came. */
export class ToolSessions {
  readonly #mains = new Map<string, readonly string[]>();
  /** Those that an import deleted. */
  readonly #returned = new Set<string>();
  /** Those that are not the main ones, of exports that were continued, too, each with its key. */
  readonly #branches = new Map<string, (readonly [id: string, conversation: string])[]>();
  /** What continues exports, and is a copy of none, by the sessions that were exported. */
  readonly #continuing = new Map<string, Continuing[]>();
  /** What begins behind a `/clear`, by the sessions with which the runs began. */
  readonly #cleared = new Map<string, Map<string, Cleared>>();
  readonly #clearedIds = new Set<string>();

  /** Takes note of one that is new here. What continues an export is the main conversation of no session of a tool. */
  add(id: string, source: string, facts: Pick<SessionFacts, 'origin' | 'continues'>): void {
    const { origin, continues } = facts;
    const conversation = origin?.conversation;
    if (conversation !== undefined)
      this.#branches.set(source, [...(this.#branches.get(source) ?? []), [id, String(conversation)]]);
    if (continues !== undefined)
      this.#continuing.set(continues, [...this.continuing(continues), { id, source }]);
    else if (conversation === undefined) this.#mains.set(source, [...(this.#mains.get(source) ?? []), id]);
  }

  /** An import deleted a session, in place of which there is another one. */
  addReturned(id: string): void {
    this.#returned.add(id);
  }

  /** A session begins behind a `/clear`. One that was made beside it, and has more of its source, has the same place. */
  addCleared(run: string, id: string, kin: Kin): void {
    this.#clearedIds.add(id);
    const cleared = this.#cleared.get(run) ?? new Map<string, Cleared>();
    if (!cleared.has(kin.session)) this.#cleared.set(run, cleared.set(kin.session, { id, kin }));
  }

  /** The sessions that begin behind a `/clear` of the run that began with a session of a tool, in the order of their times. */
  clearedIn(run: string): readonly string[] {
    const cleared = this.#cleared.get(run)?.values() ?? [];
    const places = new Map([...cleared].map(({ id, kin }) => [placeOf(kin), id]));
    return [...places.keys()].toSorted().flatMap((place) => places.get(place) ?? []);
  }

  /** Whether a session begins behind a `/clear` of a run that is known. */
  isCleared(id: string): boolean {
    return this.#clearedIds.has(id);
  }

  mainOf(source: string | undefined): string | undefined {
    return this.#mains.get(source ?? '')?.find((id) => !this.#returned.has(id));
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

/** Its place among others, which does not depend on what was imported first. Pure. */
function placeOf({ beginning, session }: Kin): string {
  return `${beginning?.shown?.when ?? ''} ${session}`;
}
