import type { Entry, HomeStore, JsonObject, Seq, SessionInfo } from '@tapedeck/tape';
import { importedEvent, isObject, originKey } from '@tapedeck/tape/internal';
import type { Visit } from '../plan/plan.ts';
import { text } from '../plan/text.ts';
import {
  clearedAtEvent,
  clearedEvent,
  continuedEvent,
  copyEvent,
  leftAtEvent,
  resumedEvent,
  returnedEvent,
  visitedEvent,
} from './copy-notes.ts';
import { derivedIn, derivedKind } from './derived-edges.ts';
import { answerId, compactedWhen, firstShownIn } from './first-said.ts';
import { isOfImport } from './imported.ts';
import { keyOf } from './keys.ts';

/**
 * What an import looks for in all sessions of a home: where each comes from, and how it begins. Nothing of it is content, and no
 * digest of any: what was erased cannot be guessed from it.
 */
export interface SessionFacts {
  /** The conversation of a tool from which an import made the session. */
  readonly origin?: JsonObject;
  /** The mark of that, which is left of it once the session was purged. */
  readonly mark?: string;
  /** Whether an import deleted it, since another session shows all of it. */
  readonly isReturned?: true;
  readonly redactions: readonly Redaction[];
  /** The exported session that it continues. */
  readonly continues?: string;
  /** The sessions of tools of which it says that it is a copy. */
  readonly copyOf: readonly string[];
  /** The session of a tool with which the run began that began it behind a `/clear`. */
  readonly clearedFrom?: string;
  /** The runs that came to it, and began with other sessions of a tool. */
  readonly visitedBy?: readonly Visit[];
  /** When it began behind a `/clear` of which no record names the run. */
  readonly clearedAt?: string;
  /** When its program left it by a `/clear`. */
  readonly leftAt?: readonly string[];
  /** Whether content is not here of which more would be said. */
  readonly lacks?: true;
  /** How a conversation of a tool begins; absent for a subagent, and for a session that no import made. */
  readonly beginning?: BeginningFacts;
}

/** What a redaction erased, and what it has left of that. */
interface Redaction {
  readonly ref: Seq;
  readonly was?: JsonObject;
  /** The key of the entry, where nothing says when it was said. */
  readonly key?: string;
}

/** How a conversation of a tool begins. */
export interface BeginningFacts {
  /** Of one that was resumed under new ids, the key of its first message in its source; empty where that is not known. */
  readonly resumed?: string;
  /** The key of its first message, whatever was rewound since. */
  readonly first?: string;
  /** The first message that it shows. */
  readonly shown?: Beginning & { readonly key: string };
  /** What its first answer is known by. */
  readonly answer?: string;
  readonly compactions: readonly Beginning[];
  /** How many of them precede all of its messages. */
  readonly leading: number;
  /** Whether it, or what it inherits, was rewound. */
  readonly isRewound: boolean;
  /** The first message behind each lost parent: what a copy of it may begin with. */
  readonly rejoined: readonly Rejoined[];
}

/** A message behind a lost parent. */
interface Rejoined extends Beginning {
  /** What the first answer there is known by. */
  readonly answer?: string;
}

/** An entry with which a copy may begin, and when its source said it: empty where that does not say when. */
export interface Beginning {
  readonly seq: Seq;
  readonly when: string;
}

/** A session as it was at a position. */
export interface FactsAt {
  readonly head: Seq;
  readonly facts: SessionFacts;
}

/**
 * Reads the facts of a session.
 * @param before the session as it was read before: no more than what follows is read
 * @param above its parent: what that lacks no fork inherits
 */
export function factsOf(
  store: HomeStore,
  info: SessionInfo,
  { before, above }: { readonly before?: FactsAt | undefined; readonly above?: FactsAt | undefined },
): SessionFacts {
  const from = (before?.head ?? 0) + 1;
  const erased = [...store.entries.read(info.id, { own: true, kind: 'redaction', from })];
  // Of a session that was purged, its origin is gone, too.
  if (before !== undefined && erased.length > 0) return factsOf(store, info, { above });
  const notes = [...store.entries.read(info.id, { own: true, namePrefix: 'import/', from })];
  const noted = (name: string) => notes.filter((note) => note.name === name);
  const [source] = noted(importedEvent);
  const origin = before?.facts.origin ?? (isObject(source?.payload) ? source.payload : undefined);
  const mark = before?.facts.mark ?? (isObject(source?.payload) ? undefined : source && originMark(source));
  const continues = before?.facts.continues ?? sessionIn(noted(continuedEvent)[0]);
  const clearedFrom = before?.facts.clearedFrom ?? sessionIn(noted(clearedEvent)[0]);
  const visitedBy = [...(before?.facts.visitedBy ?? []), ...noted(visitedEvent).flatMap(visitIn)];
  const clearedAt = before?.facts.clearedAt ?? timeIn(noted(clearedAtEvent)[0]);
  const leftAt = [...(before?.facts.leftAt ?? []), ...noted(leftAtEvent).flatMap((one) => timeIn(one) ?? [])];
  const isConversation = info.kind === 'session' && origin !== undefined && continues === undefined;
  const [resumed] = noted(resumedEvent);
  const begins = isConversation ? beginningOf(store, info, { before, above, resumed }) : undefined;
  const lacks = before?.facts.lacks === true || begins?.lacks === true || notes.some(({ absent }) => absent);
  return {
    ...(origin !== undefined && { origin }),
    ...(mark !== undefined && { mark }),
    ...((before?.facts.isReturned ?? noted(returnedEvent).length > 0) && { isReturned: true as const }),
    redactions: before?.facts.redactions ?? erased.map((one) => redactionIn(store, info.id, one)),
    ...(continues !== undefined && { continues }),
    copyOf: [...(before?.facts.copyOf ?? []), ...noted(copyEvent).flatMap((note) => sessionIn(note) ?? [])],
    ...(clearedFrom !== undefined && { clearedFrom }),
    ...(visitedBy.length > 0 && { visitedBy }),
    ...(clearedAt !== undefined && { clearedAt }),
    ...(leftAt.length > 0 && { leftAt }),
    ...(lacks && { lacks }),
    ...(begins && { beginning: begins.beginning }),
  };
}

function originMark({ key }: Entry): string | undefined {
  return key?.replace(/^u:/, '').replace(originKey, '');
}

function redactionIn(store: HomeStore, id: string, { ref = 0, payload }: Entry): Redaction {
  const was = isObject(payload) && isObject(payload.was) ? payload.was : {};
  if (typeof was.timestamp === 'string') return { ref, was };
  const [entry] = store.entries.read(id, { from: ref, to: ref });
  return { ref, ...(entry !== undefined && { key: keyOf(entry) }) };
}

function sessionIn(note: Entry | undefined): string | undefined {
  return isObject(note?.payload) ? text(note.payload.session) : undefined;
}

function visitIn(note: Entry): readonly Visit[] {
  const [session, at] = [sessionIn(note), timeIn(note)];
  return session === undefined || at === undefined ? [] : [{ session, at }];
}

function timeIn(note: Entry | undefined): string | undefined {
  return isObject(note?.payload) ? text(note.payload.at) : undefined;
}

function beginningOf(
  store: HomeStore,
  { id, base }: SessionInfo,
  {
    before,
    above,
    resumed: note,
  }: {
    readonly before: FactsAt | undefined;
    readonly above: FactsAt | undefined;
    readonly resumed: Entry | undefined;
  },
): { readonly beginning: BeginningFacts; readonly lacks: boolean } {
  const known = before?.facts.beginning;
  const since = known === undefined ? 0 : (before?.head ?? 0);
  const inherits = above !== undefined && above.head >= base ? above.facts.beginning : undefined;
  // Of a parent that lacks what is sought, only what follows it is read.
  const fromIf = (isLacking: boolean | undefined) =>
    1 + (known === undefined && isLacking === true ? base : since);
  const anchors = store.entries.read(id, {
    kind: 'anchor',
    from: fromIf(inherits && inherits.compactions.length === 0),
  });
  const boundaries = [...anchors].filter((entry) => entry.mark === 'boundary' && isOfImport(entry));
  const compactions = [
    ...(known?.compactions ?? []),
    ...boundaries.map((entry) => ({ seq: entry.seq, when: compactedWhen(entry) })),
  ];
  const from = fromIf(inherits && !inherits.isRewound);
  const [rewind] = store.entries.read(id, { kind: 'rewind', from, limit: 1 });
  const isRewound = known?.isRewound === true || rewind !== undefined;
  const isSame = known !== undefined && isWhole(known) && rewind === undefined;
  const lacksOne = boundaries.some(({ absent }) => absent);
  const rejoined = rejoinedIn(store, id, { known: known?.rejoined ?? [], since, isRewound });
  if (isSame) return { beginning: { ...known, compactions, isRewound, rejoined }, lacks: lacksOne };
  const resumed =
    known?.resumed ?? (note && (isObject(note.payload) ? (text(note.payload.first) ?? '') : ''));
  const [first] = store.entries.read(id, { kind: 'message', limit: 1 });
  const { message, answer } = firstShownIn(store, id, { isRewound });
  const beginning = {
    ...(resumed !== undefined && { resumed }),
    ...(first !== undefined && isOfImport(first) && { first: keyOf(first) }),
    ...(message && {
      shown: { seq: message.seq, when: String(message.meta.timestamp ?? ''), key: keyOf(message) },
    }),
    ...(answer && { answer: answerId(answer) }),
    compactions,
    leading: compactions.filter(({ seq }) => first === undefined || seq < first.seq).length,
    isRewound,
    rejoined,
  };
  return { beginning, lacks: lacksOne || [first, message, answer].some((entry) => entry?.absent) };
}

/** The messages behind lost parents: what is new of them, where those up to a position are known. */
function rejoinedIn(
  store: HomeStore,
  id: string,
  {
    known,
    since,
    isRewound,
  }: { readonly known: readonly Rejoined[]; readonly since: Seq; readonly isRewound: boolean },
): readonly Rejoined[] {
  const edges = [...store.entries.read(id, { own: true, kind: derivedKind, from: since + 1, limit: 1 })];
  if (edges.length === 0 && known.every(({ answer }) => answer !== undefined)) return known;
  return derivedIn(store, id).flatMap(({ of, why }) => {
    if (why !== 'parent-missing') return [];
    const [record] = store.entries.read(id, { key: `u:${of}`, limit: 1 });
    if (record === undefined) return [];
    const { message, answer } = firstShownIn(store, id, { isRewound, behind: record.seq });
    if (message === undefined) return [];
    const { seq, meta } = message;
    const when = String(meta.timestamp ?? '');
    return [{ seq, when, ...(answer !== undefined && { answer: answerId(answer) }) }];
  });
}

/** Whether what a conversation begins with stays so, unless it is rewound. */
export function isWhole({ resumed, first, answer }: BeginningFacts): boolean {
  return (resumed ?? first) !== undefined && answer !== undefined;
}
