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

/** A session that begins behind a `/clear` of a run, the session of the tool from which it came, and its time. */
interface ClearedIn extends Continuing {
  readonly when: string;
}

/** A session of a tool to which a run came, and when it first wrote there. */
interface Visited {
  readonly source: string;
  readonly at: string;
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
  /** To which other sessions runs came, and when, by the sessions with which the runs began. */
  readonly #visited = new Map<string, Map<string, string>>();
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

  /** A run that began with another session of a tool came to one. */
  addVisited(run: string, { source, at }: Visited): void {
    const visited = this.#visited.get(run) ?? new Map<string, string>();
    if (!visited.has(source)) this.#visited.set(run, visited.set(source, at));
  }

  /**
   * The sessions that begin behind a `/clear` of the run that began with a session of a tool, in the order of their times. A
   * source that names no times leaves them empty.
   */
  clearedIn(run: string): readonly ClearedIn[] {
    const cleared = this.#cleared.get(run)?.values() ?? [];
    const places = new Map(
      [...cleared].map(({ id, kin }) => [
        placeOf(kin),
        { id, source: kin.source, when: kin.beginning?.shown?.when ?? '' },
      ]),
    );
    return [...places.keys()].toSorted().flatMap((place) => places.get(place) ?? []);
  }

  /** The sessions of a tool to which a run came later. */
  visitedIn(run: string): readonly Visited[] {
    return [...(this.#visited.get(run) ?? [])].map(([source, at]) => ({ source, at }));
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
