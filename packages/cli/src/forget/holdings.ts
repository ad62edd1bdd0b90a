import type { Source } from '@tapedeck/runtime/import';
import type { Entry, HomeStore, JsonObject, Seq, SessionInfo } from '@tapedeck/tape';
import { importOriginBy, importOriginIn, isDeleted } from '@tapedeck/tape/internal';
import type { UnfinishedImport } from '@tapedeck/tape/store';
import type { RecordedContent } from './recorded-content.ts';
import { WhileAsItWas } from './while-as-it-was.ts';

/** A session with content of a source. */
export interface Holding {
  readonly id: string;
  readonly session: string;
  /** From where it was imported. */
  readonly origin: Origin;
  /** The entries that are erased: in a copy, those that it has in common with the source. */
  readonly seqs: readonly Seq[];
  readonly isCopy: boolean;
  /** Whether what is forgotten inherits from it: by that, too, other copies are known. */
  readonly isInherited: boolean;
  readonly isDeleted: boolean;
  /** Whether it was forked from another one. */
  readonly isFork: boolean;
}

/** A conversation of a tool, by the id that the tool gave it. */
export type Origin = Pick<Source, 'tool' | 'main'>;

/** What a conversation of a tool has in common with no other one. */
export function idOf({ tool, main }: Origin): string {
  return `${tool} ${main}`;
}

/** Whether two are one conversation of a tool. */
export function isSame(one: Origin, other: Origin): boolean {
  return one.tool === other.tool && one.main === other.main;
}

/** The conversation from which a session was imported, and where the session says so; undefined for any other one. */
export function originIn(store: HomeStore, id: string): (Origin & { readonly seq: Seq }) | undefined {
  const found = importOriginIn(store, id);
  return found && { ...conversationOf(found.origin), seq: found.seq };
}

function conversationOf({ format, session }: JsonObject): Origin {
  return { tool: String(format), main: String(session) };
}

/** What imports of conversations write now, or left when they were killed, and no reader sees; with where it is from. */
export function leftIn(store: HomeStore): readonly (UnfinishedImport & { readonly origin: Origin })[] {
  return store.imports.unfinished({ allRealms: true }).flatMap((left) => {
    const origin = importOriginBy(left.first);
    return origin === undefined ? [] : [{ ...left, origin: conversationOf(origin) }];
  });
}

/**
 * Finds the sessions that were imported from some conversations, and those that hold a copy of them, each time `look` is called: of
 * what was erased since the first time, it still knows copies. `content` is what the conversations say.
 * @param isFiled whether the files of a conversation have all that was read of it: what it has of others is added by who reads them
 */
export async function holdingsOf(
  store: HomeStore,
  origins: readonly Origin[],
  isFiled: (origin: Origin) => boolean,
): Promise<{ readonly look: () => readonly Holding[]; readonly content: RecordedContent }> {
  const { RecordedContent } = await import('./recorded-content.ts');
  const content = new RecordedContent();
  const known: Known = { content, isFiled, origins: new WhileAsItWas(), copied: new WhileAsItWas() };
  return { look: () => holdingsBy(store, origins, known), content };
}

/** What is known of what is forgotten. */
interface Known {
  /** What the conversations say, to which is added what is on their tapes by now. */
  readonly content: RecordedContent;
  readonly isFiled: (origin: Origin) => boolean;
  /** What was found of sessions before. */
  readonly origins: WhileAsItWas<ReturnType<typeof originIn>>;
  readonly copied: WhileAsItWas<Copied>;
}

function holdingsBy(store: HomeStore, origins: readonly Origin[], known: Known): readonly Holding[] {
  const named = new Set(origins.map(idOf));
  const sessions = store.sessions.list({ all: true, allRealms: true });
  const imported = sessions.flatMap((info): Imported[] => {
    const origin = known.origins.of(info, '', () => originIn(store, info.id));
    if (origin === undefined) return [];
    return [{ info, origin, from: origin.seq + 1, isCopy: !named.has(idOf(origin)) }];
  });
  const byId = new Map(sessions.map((info) => [info.id, info]));
  // First what is forgotten, which says what is a copy.
  const own = imported.filter(({ isCopy }) => !isCopy);
  const above = new Set(own.flatMap(({ info }) => aboveIn(byId, info, forkedFrom)));
  const holdingOf = ({ info, origin, isCopy }: Imported, seqs: readonly Seq[]): Holding => {
    const { id, session } = info;
    const about = { isInherited: above.has(id), isDeleted: isDeleted(info), isFork: info.base > 0 };
    return { id, session, origin, seqs, isCopy, ...about };
  };
  const forgotten = own.map((one) => holdingOf(one, allIn(store, one, known)));
  const { content } = known;
  const others = imported
    .filter(({ isCopy }) => isCopy)
    .map((one) => ({
      one,
      ...known.copied.of(one.info, content.known, () => copiedIn(store, one, content)),
    }));
  // What is below one that says it, too, says it, or may have it as its title.
  const saying = new Set(forgotten.map(({ id }) => id));
  for (const { one, found } of others) if (found.size > 0) saying.add(one.info.id);
  const isBelow = ({ info }: Imported) => aboveIn(byId, info, placedBelow).some((id) => saying.has(id));
  // A tool notes beside one session what was said in another one of the same file.
  const touched = new Set(
    others.flatMap(({ one, found }) => (found.size > 0 || isBelow(one) ? idOf(one.origin) : [])),
  );
  const copies = others.map(({ one, found, isPartErased }) => {
    if (touched.has(idOf(one.origin)))
      return holdingOf(one, [
        ...titledIn(store, one, content),
        ...found,
        ...quotedIn(store, one, { content, found }),
      ]);
    // Any other one may have the same title by chance, unless what it had in common was erased before.
    return holdingOf(one, isPartErased ? titledIn(store, one, content) : []);
  });
  return [...forgotten, ...copies];
}

/**
 * The order in which holdings are erased, so that a process that is killed in between knows the others when it is repeated: what a
 * copy holds is known by what the source has in common with it, which the source can have from another copy. Pure.
 */
export function inTurn(holdings: readonly Holding[]): readonly Holding[] {
  const turn = ({ isCopy, isInherited }: Holding) => (isCopy ? Number(isInherited) : 2);
  return holdings.toSorted((a, b) => turn(a) - turn(b));
}

/** A session that was imported, and where what its source says begins. */
interface Imported {
  readonly info: SessionInfo;
  readonly origin: Origin;
  readonly from: Seq;
  readonly isCopy: boolean;
}

/**
 * All that a session has, which is added to what the source says. So is what it inherits from a session with the same records, unless
 * its files say of which: which of the two has them is a matter of which was imported first.
 */
function allIn(
  store: HomeStore,
  { info, origin, from }: Imported,
  { content, isFiled }: Known,
): readonly Seq[] {
  // Where the records have other ids, what they say may be kept in another form.
  const [resumed] = store.entries.read(info.id, { own: true, namePrefix: 'import/resumed', limit: 1 });
  if (!isFiled(origin) || resumed !== undefined)
    for (const entry of inheritedBy(store, info)) content.add(entry);
  const created = store.createdTitle(info.id);
  const seqs = created === undefined ? [] : [...beginningOf(store, info)];
  for (const title of [info.title, created]) if (title !== undefined) content.addText(title);
  for (const entry of store.entries.read(info.id, { own: true, from })) {
    content.add(entry);
    if (hasContent(entry)) seqs.push(entry.seq);
  }
  return seqs;
}

/** The entries of an import with which a session began. What continues an exported session was not imported with that. */
function* inheritedBy(store: HomeStore, { id, base }: SessionInfo): Generator<Entry> {
  const [continued] = store.entries.read(id, { name: 'import/continued', limit: 1 });
  if (base === 0 || continued !== undefined) return;
  for (const { from, to, hiddenBy } of store.views.ranges(id, { at: base })) {
    if (hiddenBy !== undefined) continue;
    for (const entry of store.entries.read(id, { from, to }))
      if (entry.meta.source === 'import' && !entry.kind.startsWith('x-')) yield entry;
  }
}

/** What is found in a session that was imported from something else. */
interface Copied {
  /** What it has of what the source says, if it is a copy. What any other one says is its own. */
  readonly found: ReadonlySet<Seq>;
  /** Whether something in it was erased. */
  readonly isPartErased: boolean;
}

function copiedIn(store: HomeStore, { info, from }: Imported, content: RecordedContent): Copied {
  const found = new Set<Seq>();
  let isPartErased = false;
  for (const entry of store.entries.read(info.id, { own: true, from })) {
    if (hasContent(entry) && content.has(entry)) found.add(entry.seq);
    isPartErased ||= entry.kind === 'redaction';
  }
  return { found, isPartErased };
}

/** What else a session has that quotes what the source says, where it has something of that. */
function quotedIn(
  store: HomeStore,
  { info, from }: Imported,
  { content, found }: { readonly content: RecordedContent; readonly found: ReadonlySet<Seq> },
): readonly Seq[] {
  function* others() {
    for (const entry of store.entries.read(info.id, { own: true, from }))
      if (hasContent(entry) && !found.has(entry.seq)) yield entry;
  }
  const quotes = new Set<Seq>();
  // What else was said when something was that was erased before, this says: what quotes it is known by that.
  for (const entry of others())
    if (content.wasErased(entry)) {
      content.add(entry);
      quotes.add(entry.seq);
    }
  for (const entry of others()) if (content.isIn(entry)) quotes.add(entry.seq);
  return [...quotes];
}

/** The first entry of a session whose title quotes what the source says. */
function titledIn(store: HomeStore, { info }: Imported, content: RecordedContent): readonly Seq[] {
  const created = store.createdTitle(info.id);
  return created !== undefined && content.hasText(created) ? beginningOf(store, info) : [];
}

/** The session from which a session was forked. */
const forkedFrom = ({ parentId }: SessionInfo) => [parentId];

/** That, and the one below which a link puts it: a copy may have nothing of its source. */
const placedBelow = ({ parentId, link }: SessionInfo) => [parentId, link?.parentId];

/** The ids of all sessions above a session, by what says which are next above one. */
function aboveIn(
  sessions: ReadonlyMap<string, SessionInfo>,
  info: SessionInfo,
  nextAbove: (info: SessionInfo) => readonly (string | undefined)[],
): readonly string[] {
  const ids = new Set<string>();
  const left = [info];
  for (let at = left.pop(); at !== undefined; at = left.pop())
    for (const id of nextAbove(at)) {
      if (id === undefined || ids.has(id)) continue;
      ids.add(id);
      const next = sessions.get(id);
      if (next !== undefined) left.push(next);
    }
  return [...ids];
}

/** The first entry of a session, with which the title of its creation goes, unless it was erased. */
function beginningOf(store: HomeStore, { id }: SessionInfo): readonly Seq[] {
  const [first] = store.entries.read(id, { own: true, limit: 1 });
  return first === undefined || first.payload === null ? [] : [first.seq];
}

/** Whether an entry has something that is erased. That its source was forgotten is what a session says last, and stays. */
function hasContent({ kind, payload, key }: Entry): boolean {
  return kind !== 'rewind' && kind !== 'redaction' && payload !== null && key !== 'u:import:forgotten';
}
