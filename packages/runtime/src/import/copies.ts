import type { HomeStore, JsonObject, Seq } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { Alike } from './alike.ts';
import { continuedFrom, copyEvent, isResumed } from './copy-notes.ts';
import { Family } from './family.ts';
import { answerId, firstAnswer, firstAnswerIn, firstKey } from './first-said.ts';
import { type Counted, isOfImport, keyOf } from './imported.ts';
import { countsOf, Ledger, SharedCounts } from './ledger.ts';
import { sessionOf, sourceOf } from './origins.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';

/**
 * The conversations of a home by the key of their first message and by their first answer, and those that are
 * copies by what they are copies of. A copy begins with the records of its source, so that either finds the other, whichever
 * was imported first. What sessions have is read once: `begin` and `end` of an import say when others may have written.
 */
class Copies {
  readonly ledger: Ledger;
  readonly #store: HomeStore;
  /** All conversations that are no subagents, and of these the main ones, by their ULIDs. */
  readonly #kin = new Map<string, Kin>();
  /** Those of them that are not the main ones, by the sessions of tools from which they came, each with its key. */
  readonly #branches = new Map<string, (readonly [id: string, conversation: string])[]>();
  /** The main conversation of each session of a tool. */
  readonly #mains = new Map<string, string>();
  /** Those that lack a message or an answer. */
  readonly #unfinished = new Set<string>();
  readonly #byFirst = new Map<string, Group>();
  /** Those whose first answer is known by the same request or key. */
  readonly #byAnswer = new Map<string, Group>();
  /** Those that have a compaction, and those that begin with it, by its key. */
  readonly #byBoundary = new Map<string, Group>();
  readonly #beginningAt = new Map<string, Group>();
  readonly #of = new Map<string, Group>();
  readonly #sources = new Map<string, Set<string>>();
  /** Those that this process wrote since they were read. */
  readonly #wrote = new Set<string>();
  /** The last line of the lineage that was read. */
  #g = 0;
  /** The state of the home behind the last import. */
  #changes: number | undefined;
  /** How often others may have written. */
  #round = 0;

  constructor(store: HomeStore) {
    this.#store = store;
    this.ledger = new Ledger(store);
  }

  /** An import begins: where another process wrote since the last one, all that is known is looked at anew. */
  begin(): void {
    if (this.#changes === this.#store.changes()) return;
    this.#round += 1;
    for (const id of this.#unfinished) this.#wrote.add(id);
  }

  /** An import ends. */
  end(): void {
    this.#readOn();
    this.#changes = this.#store.changes();
  }

  /** A session was written. */
  wrote(id: string): void {
    this.#wrote.add(id);
  }

  /** The conversations whose first answer is that to a request, main ones first. */
  answeredFirst(request: string): readonly string[] {
    this.#readOn();
    const { mains = [], ids = [] } = this.#byAnswer.get(request) ?? {};
    return [...new Set([...mains, ...ids])];
  }

  /** The key of the first message of a session. */
  firstOf(id: string): string | undefined {
    this.#readOn();
    return this.#kin.get(id)?.first;
  }

  /** The sessions of a session of a tool beside the main one, without subagents, by their ids, and their conversations. */
  branchesOf(source: string): readonly (readonly [id: string, conversation: string])[] {
    this.#readOn();
    return this.#branches.get(source) ?? [];
  }

  /** The session of a tool from which a session came. */
  sourceOf(id: string): string | undefined {
    return this.#kin.get(id)?.source;
  }

  /** The main conversation of the source of a session. */
  mainOf(id: string): string | undefined {
    return this.#mains.get(this.sourceOf(id) ?? '');
  }

  /** The main conversations whose first message has a key. */
  mains(key: string): readonly string[] {
    this.#readOn();
    return this.#byFirst.get(key)?.mains ?? [];
  }

  /** The sessions that begin with a message, as a tree, and which of the main ones is likely the source of which. */
  family(key: string | undefined): { readonly family: Family; readonly alike: Alike } | undefined {
    this.#readOn();
    const group = key === undefined ? undefined : this.#byFirst.get(key);
    if (group === undefined) return undefined;
    group.family ??= new Family(this.#store);
    group.alike ??= new Alike({
      main: ({ id }) => this.#kin.get(id)?.isMain === true,
      copy: ({ id }) => this.isCopy(id),
    });
    const { family, alike } = group;
    if (group.round !== this.#round) alike.forget();
    for (const id of this.#freshIn(group)) {
      const read = family.read(id);
      if (read !== undefined && this.#kin.get(id)?.isMain === true) alike.move(read.before, read.member.end);
    }
    return { family, alike };
  }

  /** The tokens of the sessions whose first answer is known by the same request or key. */
  countsOf(answer: string): SharedCounts | undefined {
    this.#readOn();
    return this.#counts(this.#byAnswer.get(answer));
  }

  /** The sessions that have a compaction, by its key. */
  compactedAt(key: string): Iterable<string> {
    this.#readOn();
    return this.#byBoundary.get(key)?.ids ?? [];
  }

  /** The tokens of the sessions that have a compaction, or only of those that begin with it, by its key. */
  countsBehind(key: string, isFirst: boolean): SharedCounts | undefined {
    this.#readOn();
    return this.#counts((isFirst ? this.#byBoundary : this.#beginningAt).get(key));
  }

  /** The tokens of the sessions that say that they are copies of a session of a tool. */
  countsOfCopies(session: string): SharedCounts | undefined {
    this.#readOn();
    return this.#counts(this.#of.get(session));
  }

  #counts(group: Group | undefined): SharedCounts | undefined {
    if (group === undefined) return undefined;
    group.counts ??= new SharedCounts(this.ledger);
    for (const id of this.#freshIn(group)) group.counts.add(id);
    return group.counts;
  }

  /** Those of some sessions that have to be read. */
  #freshIn(group: Group): readonly string[] {
    const fresh = [...(group.round === this.#round ? group.fresh : group.ids)];
    group.fresh.clear();
    group.round = this.#round;
    return fresh;
  }

  /** The sessions that say that they are copies of a session of a tool. */
  of(session: string): Iterable<string> {
    this.#readOn();
    return this.#of.get(session)?.ids ?? [];
  }

  /** Whether a session names one of which it is a copy. */
  isCopy(id: string): boolean {
    return this.#sources.has(id);
  }

  /** Whether a session names another one, by its id, as that of which it is a copy. */
  isCopyOf(id: string, other: string | undefined): boolean {
    const sources = [...(this.#sources.get(id) ?? [])];
    return other !== undefined && sources.some((of) => this.#store.sessions.find(of)?.id === other);
  }

  /** Whether a session names the one of which it is a copy, and that is here. */
  isPlaced(id: string): boolean {
    return [...(this.#sources.get(id) ?? [])].some((of) => this.#store.sessions.find(of) !== undefined);
  }

  add(of: string, id: string): void {
    join(this.#of, of, id, true);
    put(this.#sources, id, of);
    // Where it belongs is another question now.
    for (const group of this.#kin.get(id)?.groups ?? []) group.fresh.add(id);
  }

  #readOn(): void {
    const fresh = new Set<string>();
    const types = ['session', 'fork'] as const;
    for (const { g, session } of this.#store.lineage.read({ from: this.#g + 1, types })) {
      this.#g = g;
      if (this.#isNewKin(session)) fresh.add(session);
    }
    for (const id of this.#wrote) {
      // A fork says only with its first entries what it is.
      if (this.#isNewKin(id)) fresh.add(id);
      for (const group of this.#kin.get(id)?.groups ?? []) group.fresh.add(id);
      for (const of of this.#sources.get(id) ?? []) this.#of.get(of)?.fresh.add(id);
      this.#lookForBoundaries(id);
      if (this.#unfinished.has(id)) fresh.add(id);
    }
    this.#wrote.clear();
    for (const id of fresh) this.#look(id);
  }

  #isNewKin(id: string): boolean {
    const origin = this.#kin.has(id) ? undefined : originIn(this.#store, id);
    if (origin === undefined) return false;
    const { format, session, conversation } = origin;
    const isMain = conversation === undefined;
    const source = sourceOf(format, session);
    this.#kin.set(id, { isMain, source, groups: new Set(), read: 0 });
    this.#lookForBoundaries(id);
    if (!isMain)
      this.#branches.set(source, [...(this.#branches.get(source) ?? []), [id, String(conversation)]]);
    this.#unfinished.add(id);
    if (isMain) {
      this.#mains.set(source, id);
      this.#readCopy(id);
    }
    return true;
  }

  /** Looks for the first message and the first answer of a session. */
  #look(id: string): void {
    const kin = this.#kin.get(id);
    if (kin === undefined) return;
    // The keys that it inherits are not those of its source.
    kin.first ??= isResumed(this.#store, id) ? '' : firstKey(this.#store, id);
    if (kin.first !== undefined && kin.first !== '') this.#join(this.#byFirst, kin.first, id);
    const { boundary } = kin;
    if (boundary !== undefined && this.#isFirst(id, boundary.seq))
      this.#join(this.#beginningAt, boundary.key, id);
    const answer = firstAnswerIn(this.#store, id);
    if (answer === undefined) return;
    if (kin.first !== undefined) this.#unfinished.delete(id);
    this.#join(this.#byAnswer, answerId(answer), id);
  }

  /** Looks for the compactions that a session has by now. */
  #lookForBoundaries(id: string): void {
    const [kin, info] = [this.#kin.get(id), this.#store.sessions.find(id)];
    if (kin === undefined || info === undefined || info.head === kin.read) return;
    for (const entry of this.#store.entries.read(id, { kind: 'anchor', from: kin.read + 1 })) {
      if (entry.mark !== 'boundary' || !isOfImport(entry)) continue;
      const key = keyOf(entry);
      kin.boundary ??= { key, seq: entry.seq };
      this.#join(this.#byBoundary, key, id);
    }
    kin.read = info.head;
  }

  /** Whether no message of a session precedes a position. */
  #isFirst(id: string, seq: Seq): boolean {
    const [message] = this.#store.entries.read(id, { kind: 'message', to: seq, limit: 1 });
    return message === undefined;
  }

  #join(groups: Map<string, Group>, by: string, id: string): void {
    const kin = this.#kin.get(id);
    kin?.groups.add(join(groups, by, id, kin.isMain));
  }

  #readCopy(id: string): void {
    for (const { payload } of this.#store.entries.read(id, { own: true, name: copyEvent }))
      if (isObject(payload) && typeof payload.session === 'string') this.add(payload.session, id);
  }
}

/** A conversation of an import that is no subagent. */
interface Kin {
  readonly isMain: boolean;
  /** The session of a tool from which it came. */
  readonly source: string;
  /** The key of its first message; empty where that is of a session that it has under other ids. */
  first?: string | undefined;
  /** Its first compaction. */
  boundary?: { readonly key: string; readonly seq: Seq };
  /** How far its tape was read for compactions. */
  read: Seq;
  /** With which others it has something in common. */
  readonly groups: Set<Group>;
}

/** Sessions that have something in common. */
interface Group {
  readonly ids: Set<string>;
  /** Those that are main conversations. */
  readonly mains: string[];
  /** Those that have something new. */
  readonly fresh: Set<string>;
  /** When all of them were read. */
  round: number;
  family?: Family;
  alike?: Alike;
  counts?: SharedCounts;
}

function join(groups: Map<string, Group>, by: string, id: string, isMain: boolean): Group {
  const group = groups.get(by) ?? { ids: new Set<string>(), mains: [], fresh: new Set<string>(), round: -1 };
  groups.set(by, group);
  if (group.ids.has(id)) return group;
  group.ids.add(id);
  if (isMain) group.mains.push(id);
  group.fresh.add(id);
  return group;
}

function put(map: Map<string, Set<string>>, key: string, id: string): void {
  const ids = map.get(key) ?? new Set();
  map.set(key, ids.add(id));
}

const known = new WeakMap<HomeStore, Copies>();

/** What is known of the copies in a home. It is read once, and then as far as the lineage has grown. */
export function copiesIn(store: HomeStore): Copies {
  const found = known.get(store) ?? new Copies(store);
  known.set(store, found);
  return found;
}

/** Where a conversation of an import comes from; undefined for a subagent, for what continues an export, and for any other session. */
function originIn(store: HomeStore, id: string): JsonObject | undefined {
  if (store.sessions.find(id)?.kind !== 'session') return undefined;
  const [origin] = store.entries.read(id, { own: true, name: 'import/source', limit: 1 });
  return isObject(origin?.payload) && continuedFrom(store, id) === undefined ? origin.payload : undefined;
}

/**
 * The tokens that others than a session (`own`) have counted of what a conversation has: those that begin with the same answer,
 * its source and its copies.
 */
export function countsElsewhere(
  store: HomeStore,
  {
    format,
    session,
    copyOf,
    conversations,
  }: Pick<ImportPlan, 'format' | 'session' | 'copyOf' | 'conversations'>,
  { key, spine }: Pick<ConversationPlan, 'key' | 'spine'>,
  own: string | undefined,
): readonly Counted[] {
  const copies = copiesIn(store);
  const name = copyOf === undefined ? undefined : sessionOf(store, { format, session: copyOf });
  const source = name === undefined ? undefined : store.sessions.find(name)?.id;
  // Behind a base its first answer is another one, and so it is in the file of a copy that begins at a compaction.
  const whole = conversations.find((one) => one.key === key)?.spine ?? [];
  const answers = new Set([spine, whole].flatMap((drafts) => firstAnswer(drafts) ?? []).map(answerId));
  // A copy that begins at a compaction may have another first answer than all others.
  const boundaries = spine.flatMap((one, i) =>
    one.mark === 'boundary' ? { of: one.key ?? '', isFirst: i === 0 } : [],
  );
  const shared = [
    copies.countsOfCopies(session),
    ...boundaries.map(({ of, isFirst }) => copies.countsBehind(of, isFirst)),
    ...[...answers].map((answer) => copies.countsOf(answer)),
  ];
  return [
    ...(source === undefined ? [] : [countsOf(copies.ledger, source)]),
    ...shared.flatMap((one) => one?.elsewhere(own) ?? []),
  ];
}
