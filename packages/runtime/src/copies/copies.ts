/**
 * Copies: the sessions of the home that begin alike (`copies.ts`), by the ids of their records as trees (`family.ts`), along which
 * `walk.ts` finds a conversation, or by what they say, whatever their ids are (`beginnings.ts`, `resemblance.ts`), of which
 * `alike.ts` and `points.ts` conclude which one is the source. So a copy is written once, behind its source (`copied.ts`,
 * `resumed.ts`, `behind-compaction.ts`, or `behind-own-work.ts` where a person went on in that) or before it (`as-copied.ts`), and
 * its tokens are counted once (`counted-elsewhere.ts`). A copy takes the place of an empty session of its own (`empty-main.ts`).
 * `clears.ts` has the moments of a `/clear` that a program sent. Imports `imported` and what lies below.
 */

import type { Draft, HomeStore, SessionInfo } from '@tapedeck/tape';
import { firstKey } from '../imported/first-said.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import { Ledger, SharedCounts } from '../imported/ledger.ts';
import { isOfRealm } from '../imported/of-realm.ts';
import { ofStore } from '../imported/of-store.ts';
import { sourceOf } from '../imported/origins.ts';
import { isWhole, type SessionFacts } from '../imported/session-facts.ts';
import { Beginnings } from './beginnings.ts';
import { Clears } from './clears.ts';
import { ErasedRecords } from './erased-records.ts';
import { Families } from './families.ts';
import type { Family } from './family.ts';
import { type Group, join } from './group.ts';
import type { Kin } from './kin.ts';
import { NamedCopies } from './named-copies.ts';
import { ToolSessions } from './tool-sessions.ts';
import { UnreadSessions } from './unread-sessions.ts';

/**
 * The conversations of a home by the key of their first message and by their first answer, and those that are
 * copies by what they are copies of. A copy begins with the records of its source, so that either finds the other, whichever
 * was imported first. What sessions have is read once.
 */
class Copies {
  readonly ledger: Ledger;
  readonly #store: HomeStore;
  /** All conversations that are no subagents, and of these the main ones, by their ULIDs. */
  readonly #kin = new Map<string, Kin>();
  readonly #ofTools = new ToolSessions();
  readonly #clears = new Clears();
  /** Those that lack a message or an answer. */
  readonly #unfinished = new Set<string>();
  readonly #byFirst = new Map<string, Group>();
  readonly #families: Families;
  /** Those whose first answer, or first one behind a lost parent, is known by the same request or key. */
  readonly #byAnswer = new Map<string, Group>();
  readonly #beginnings: Beginnings;
  readonly #named = new NamedCopies();
  readonly #erased: ErasedRecords;
  readonly #unread: UnreadSessions;

  constructor(store: HomeStore) {
    this.#store = store;
    this.ledger = new Ledger(store);
    this.#unread = new UnreadSessions(store);
    this.#families = new Families(store);
    this.#beginnings = new Beginnings(store);
    this.#erased = new ErasedRecords(store);
  }

  /** How often others may have written. */
  get round(): number {
    return this.#unread.round;
  }

  /** An import begins: where another process wrote since the last one, all that is known is looked at anew. */
  begin(): void {
    this.#unread.begin(this.#unfinished);
  }

  /** An import ends. */
  end(): void {
    this.#readOn();
    this.#unread.end();
    knownSessionsIn(this.#store).save();
  }

  /** A session was written. */
  wrote(id: string): void {
    this.#unread.wrote(id);
    const kin = this.#kin.get(id);
    if (kin !== undefined) kin.writes += 1;
  }

  /** The sessions that were forked from one, wherever links have put them: by their ULIDs, the oldest first. */
  forksOf(id: string): Iterable<string> {
    this.#readOn();
    return this.#unread.forksOf(id);
  }

  /** The conversations whose first answer, or first one behind a lost parent, is that to a request, main ones first. */
  answeredFirst(request: string): readonly string[] {
    this.#readOn();
    const { mains = [], ids = [] } = this.#byAnswer.get(request) ?? {};
    return [...new Set([...mains, ...ids])];
  }

  /** The conversations by the sessions of tools from which they came. */
  get tools(): ToolSessions {
    this.#readOn();
    return this.#ofTools;
  }

  /** When programs left sessions by a `/clear`, and began others. */
  get clears(): Clears {
    this.#readOn();
    return this.#clears;
  }

  /** The session of a tool from which a session came. */
  sourceOf(id: string): string | undefined {
    this.#readOn();
    return this.#kin.get(id)?.source;
  }

  /**
   * The sessions of tools that have a beginning in common with that of a session, or with one that has: the ULIDs of their
   * conversations, main ones first.
   */
  resembling(id: string): ReadonlyMap<string, readonly string[]> {
    this.#readOn();
    const found = new Map<string, readonly string[]>();
    const left = new Set([this.#kin.get(id)?.source]);
    const looked = new Set<string>();
    // What is added meanwhile is looked at, too.
    for (const source of left) {
      const main = this.#ofTools.mainOf(source);
      if (source === undefined || main === undefined) continue;
      const ids = [main, ...this.#ofTools.branchesOf(source).map(([branch]) => branch)];
      found.set(source, ids);
      left.add(this.namedSource(main));
      const { session = '' } = this.#kin.get(main) ?? {};
      for (const copy of this.#named.of(session)?.ids ?? []) left.add(this.#kin.get(copy)?.source);
      for (const one of ids) {
        const kin = this.#kin.get(one);
        if (kin === undefined) continue;
        for (const other of this.#beginnings.alike(one, kin, looked)) left.add(other.source);
      }
    }
    return found;
  }

  /** The session of a tool of which a session names itself a copy, where it is here. */
  namedSource(id: string): string | undefined {
    const { format = '' } = this.#kin.get(id) ?? {};
    const named = this.#named.sourcesOf(id).map((of) => sourceOf(format, of));
    return named.findLast((source) => this.#ofTools.mainOf(source) !== undefined);
  }

  /** The key that the first message which a session shows has in its source; empty where that is not known. */
  firstOf(id: string): string {
    const kin = this.#kin.get(id);
    const main = this.#ofTools.mainOf(kin?.source) ?? '';
    const its = this.#kin.get(main);
    const shown = kin?.beginning?.shown?.key;
    const resumed = its?.beginning?.resumed;
    if (its === undefined || resumed === undefined) return shown ?? '';
    its.inherits ??= firstKey(this.#store, main);
    return (shown === its.inherits ? resumed : shown) ?? '';
  }

  /** What the messages of a session behind lost parents are known by. */
  rejoinedIn(id: string): readonly string[] {
    const kin = this.#kin.get(id);
    return kin === undefined ? [] : this.#beginnings.rejoinedIn(id, kin);
  }

  /** What a session is as: it changes when that is written, here or perhaps by others. */
  stateOf(id: string): string {
    return `${this.round} ${this.#kin.get(id)?.writes}`;
  }

  /** The main conversations whose first message, that which is shown or was written first, has a key. */
  mains(key: string): readonly string[] {
    this.#readOn();
    return this.#byFirst.get(key)?.mains ?? [];
  }

  /** The sessions that begin with a message, as a tree. */
  family(key: string | undefined): Family | undefined {
    this.#readOn();
    const group = key === undefined ? undefined : this.#byFirst.get(key);
    return group && this.#families.of(group, this.round);
  }

  /** The tokens of the sessions whose first answer, or first one behind a lost parent, is known by the same request or key. */
  countsOf(answer: string): SharedCounts | undefined {
    this.#readOn();
    return this.#counts(this.#byAnswer.get(answer));
  }

  /** The sessions that have a compaction. */
  compactedAt(compaction: Draft): Iterable<string> {
    this.#readOn();
    return this.#beginnings.compactedAt(compaction, { isFirst: false })?.ids ?? [];
  }

  /** The tokens of the sessions that have a compaction, or only of those that begin with it. */
  countsBehind(compaction: Draft, isFirst: boolean): SharedCounts | undefined {
    this.#readOn();
    return this.#counts(this.#beginnings.compactedAt(compaction, { isFirst: !isFirst }));
  }

  /** The tokens of the sessions that say that they are copies of a session of a tool. */
  countsOfCopies(session: string): SharedCounts | undefined {
    this.#readOn();
    return this.#counts(this.#named.of(session));
  }

  #counts(group: Group | undefined): SharedCounts | undefined {
    if (group === undefined) return undefined;
    group.counts ??= new SharedCounts(this.ledger);
    for (const id of group.takeFresh(this.round)) group.counts.add(id);
    return group.counts;
  }

  /** The sessions that say that they are copies of a session of a tool. */
  of(session: string): Iterable<string> {
    this.#readOn();
    return this.#named.of(session)?.ids ?? [];
  }

  /** What was erased in sessions, by now. */
  erased(): ErasedRecords {
    this.#unread.noteOthers();
    this.#readOn();
    return this.#erased;
  }

  /** Whether a session names another one, by its id, as that of which it is a copy. */
  isCopyOf(id: string, other: string | undefined): boolean {
    const sources = this.#named.sourcesOf(id);
    return other !== undefined && sources.some((of) => this.#store.sessions.find(of)?.id === other);
  }

  /** Whether a session names the one of which it is a copy, and that is here. */
  isPlaced(id: string): boolean {
    return this.#named.sourcesOf(id).some((of) => this.#store.sessions.find(of) !== undefined);
  }

  /** A session begins behind a `/clear`, in the run that began with another one. */
  addCleared(run: string, id: string): void {
    this.#readOn();
    const kin = this.#kin.get(id);
    if (kin !== undefined) this.#ofTools.addCleared(run, id, kin);
  }

  /** A run that began with another session came to one. */
  addVisited(run: string, id: string, at: string): void {
    const source = this.sourceOf(id);
    if (source !== undefined) this.#ofTools.addVisited(run, { source, at });
  }

  add(of: string, id: string): void {
    this.#named.add(of, id);
    // Where it belongs is another question now.
    for (const group of this.#kin.get(id)?.groups ?? []) group.refresh(id);
  }

  #readOn(): void {
    const { all, fresh } = this.#unread.take();
    for (const info of all) this.#factsOf(info);
    for (const info of fresh) this.#take(info);
  }

  /** The facts of a session as it is: what was erased in any is noted. */
  #factsOf(info: SessionInfo): SessionFacts {
    const facts = knownSessionsIn(this.#store).of(info);
    this.#erased.take(info.id, facts);
    return facts;
  }

  /** Takes note of a session as it is. */
  #take(info: SessionInfo): void {
    const { id } = info;
    const facts = this.#factsOf(info);
    const kin = this.#kin.get(id) ?? this.#newKin(info, facts);
    const { beginning } = facts;
    if (facts.isReturned === true) this.#ofTools.addReturned(id);
    if (kin === undefined || beginning === undefined) return;
    if (kin.isMain) this.#clears.take(kin.source, facts);
    for (const group of kin.groups) group.refresh(id);
    this.#named.refresh(id);
    const { resumed, first, shown, answer, rejoined } = beginning;
    // The keys that it inherits are not those of its source. What came before a prompt since begins what a copy has now.
    for (const one of resumed === undefined ? [first, shown?.key] : [])
      if (one !== undefined) this.#join(this.#byFirst, one, id);
    // A copy may begin with what follows a lost parent.
    for (const one of [answer, ...rejoined.map((one) => one.answer)])
      if (one !== undefined) this.#join(this.#byAnswer, one, id);
    this.#beginnings.take(id, kin, beginning);
    kin.beginning = beginning;
    if (isWhole(beginning)) this.#unfinished.delete(id);
    else this.#unfinished.add(id);
  }

  /** Takes note of a conversation that is new here, unless it continues an export. */
  #newKin(info: SessionInfo, facts: SessionFacts): Kin | undefined {
    const { id, kind } = info;
    const { origin, continues, copyOf, clearedFrom, visitedBy = [] } = facts;
    const others = this.#ofTools.continuing(continues);
    if (kind !== 'session' || origin === undefined || others.some((one) => one.id === id)) return undefined;
    // What is forked from one of another realm is there, too, and has no name here.
    if (!isOfRealm(this.#store, info)) return undefined;
    const { format, session, conversation } = origin;
    const isMain = conversation === undefined;
    const source = sourceOf(format, session);
    this.#ofTools.add(id, source, facts);
    if (continues !== undefined) return undefined;
    const of = { format: String(format), session: String(session) };
    const kin = {
      isMain,
      source,
      ...of,
      begins: [],
      groups: new Set<Group>(),
      writes: 0,
    };
    this.#kin.set(id, kin);
    if (isMain) for (const of of copyOf) this.add(of, id);
    if (isMain)
      for (const { session: run, at } of visitedBy)
        this.#ofTools.addVisited(sourceOf(format, run), { source, at });
    if (isMain && clearedFrom !== undefined) this.#ofTools.addCleared(sourceOf(format, clearedFrom), id, kin);
    return kin;
  }

  #join(groups: Map<string, Group>, by: string, id: string): void {
    const kin = this.#kin.get(id);
    kin?.groups.add(join(groups, by, { id, isMain: kin.isMain }));
  }
}

/** What is known of the copies in a home. It is read once, and then as far as the lineage has grown. */
export const copiesIn: (store: HomeStore) => Copies = ofStore((store) => new Copies(store));
