import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { titleEvent } from '@tapedeck/tape/internal';

/** A shorter text is said in many places, and names none of them. */
const saidMin = 16;

/** What a search looks for is no longer. */
const soughtMax = 200;

/** The most texts of an entry of which places are sought: each costs a search. */
const textsMax = 3;

/** The most entries of which places are sought. */
export const soughtEntriesMax = 100;

/**
 * Where else a home says what entries of a session say, in deleted sessions, too: as `SESSION@SEQ`, by the positions of the
 * entries. So the report of a subagent is in the session that got it, and a prompt in the title of a session.
 */
export async function saidElsewhere(
  store: HomeStore,
  session: string,
  seqs: readonly Seq[],
): Promise<ReadonlyMap<Seq, readonly string[]>> {
  const { QuotedTexts, saidIn } = await import('@tapedeck/runtime/internal');
  const entries = seqs
    .slice(0, soughtEntriesMax)
    .flatMap((seq) => [...store.entries.read(session, { from: seq, to: seq })]);
  const placeOf = ({ tape, seq }: { readonly tape: string; readonly seq: Seq }) => `${tape}@${seq}`;
  const own = new Set(entries.map(placeOf));
  const titled = titlesIn(store);
  return new Map(
    entries.map((entry) => {
      const places = new Set<string>();
      for (const text of soughtIn(saidIn(entry.payload), entry))
        for (const hit of store.entries.search({ text, deleted: true }).hits)
          if (!own.has(placeOf(hit))) places.add(`${hit.session}@${hit.seq}`);
      const texts = new QuotedTexts();
      texts.addSaid(entry.payload);
      for (const { title, place } of titled) if (texts.has(title)) places.add(place);
      return [entry.seq, [...places]];
    }),
  );
}

/** The longest lines of the longest texts of an entry: what repeats one has its lines. A file that has all of it has its name. */
function soughtIn(texts: readonly string[], { meta: { savedAs } }: Entry): readonly string[] {
  const lines = texts.map((text) =>
    text.split('\n').reduce((most, line) => (line.trim().length > most.length ? line.trim() : most), ''),
  );
  const longest = [...new Set(lines)]
    .filter((line) => line.length >= saidMin)
    .toSorted((a, b) => b.length - a.length)
    .slice(0, textsMax)
    .map((line) => line.slice(0, soughtMax).toWellFormed());
  return typeof savedAs === 'string' ? [...longest, savedAs] : longest;
}

/** The titles with which sessions were created, each with the entry with which it is erased. */
function titlesIn(store: HomeStore): readonly { readonly title: string; readonly place: string }[] {
  return store.sessions.list({ all: true, allRealms: true }).flatMap(({ id, session, title, base }) => {
    if (title === undefined) return [];
    // A search finds those that it got later.
    const [later] = store.entries.read(id, { own: true, name: titleEvent, limit: 1 });
    return later === undefined ? [{ title, place: `${session}@${base + 1}` }] : [];
  });
}
