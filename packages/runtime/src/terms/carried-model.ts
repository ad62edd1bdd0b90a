import type { Entry, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type CallSettings, callSettingsIn, mergeSettings } from '../model/call-settings.ts';
import { usableName } from '../model/name.ts';
import { ancestryOf, factsOf, parentOf, type SessionFacts } from './terms.ts';

/** The number of messages that are searched, from the end, for the last one of a run. */
const carriedMax = 10_000;
const pageSize = 20;

type AnsweredMessage = Pick<Entry, 'inherited' | 'meta' | 'elsewhere'>;

/**
 * The result of a search among what was visible at a position. It holds until a rewind goes back past that position.
 * A message without an answer is not kept: its run can still fail.
 */
interface Found {
  readonly head: Seq;
  readonly message: AnsweredMessage | undefined;
}

const found = new WeakMap<TapeStore, Map<string, Found>>();
/** The number of sessions whose results are kept, those found last. */
const foundMax = 1_000;

/** The name of the model, and the settings of its calls, that a session carries from run to run. */
export interface Carried {
  readonly model: string | undefined;
  readonly settings: CallSettings;
}

/**
 * What a session carries: the model and the settings that its last visible user message names. Every message
 * that a run takes up records the run's. A message whose run failed before any answer names nothing, so that a
 * session does not keep a model that cannot be used. A fork that inherits no such message carries what its parent
 * carried at the fork.
 * @param at the position to look from, among the entries visible now (default: the head)
 */
export async function carriedBy(
  store: TapeStore,
  facts: SessionFacts,
  { at }: { readonly at?: Seq } = {},
): Promise<Carried> {
  const { info } = facts;
  const message =
    at === undefined || at >= info.head
      ? await lastOf(store, info)
      : (await search(store, info, { to: at })).message;
  return await carriedAfter(store, facts, message);
}

/** What a session carried at a position, among the entries that were visible there. */
async function carriedThen(store: TapeStore, facts: SessionFacts, at: Seq): Promise<Carried> {
  return await carriedAfter(store, facts, await lastOf(store, facts.info, at));
}

async function carriedAfter(
  store: TapeStore,
  facts: SessionFacts,
  message: AnsweredMessage | undefined,
): Promise<Carried> {
  const { origin } = facts;
  const { model, call } = origin.settings;
  const inherited = message === undefined ? await carriedAbove(store, facts) : undefined;
  if (inherited !== undefined)
    return { model: model ?? inherited.model, settings: mergeSettings(inherited.settings, call) };
  const recorded = typeof message?.meta.model === 'string' ? message.meta.model : undefined;
  const named = message === undefined ? undefined : usableName(recorded, message);
  const settings = callSettingsIn(message?.meta.settings);
  // The settings of a fork take precedence over an inherited message.
  return message?.inherited === true
    ? { model: model ?? named, settings: mergeSettings(settings, call) }
    : { model: named ?? model, settings: mergeSettings(call, settings) };
}

/** What a fork without such a message carries from above; undefined for a root. */
async function carriedAbove(store: TapeStore, facts: SessionFacts): Promise<Carried | undefined> {
  const { info } = facts;
  if (info.parentId === undefined) return undefined;
  if (info.floor > 0) {
    const parent = await parentOf(store, info);
    return parent === undefined
      ? undefined
      : await carriedThen(store, await factsOf(store, parent), info.base);
  }
  // It reads every message of those above it, and none names a model: what they were made with is left.
  const above = (await facts.above?.()) ?? (await ancestryOf(store, facts)).slice(1);
  return above.reduceRight<Carried>(
    (carried, { origin: { settings } }) => ({
      model: settings.model ?? carried.model,
      settings: mergeSettings(carried.settings, settings.call),
    }),
    { model: undefined, settings: {} },
  );
}

/** The model of `carriedBy`, by name or ULID of the session; undefined for an unknown session. */
export async function carriedModel(
  store: TapeStore,
  session: string,
  o: { readonly at?: Seq } = {},
): Promise<string | undefined> {
  const info = await store.sessions.find(session);
  return info === undefined ? undefined : (await carriedBy(store, await factsOf(store, info), o)).model;
}

/** The last message, of those that were visible at a position, that a run took up and did not fail with. */
async function lastOf(
  store: TapeStore,
  info: SessionInfo,
  at: Seq = info.head,
): Promise<AnsweredMessage | undefined> {
  const known = found.get(store) ?? new Map<string, Found>();
  found.set(store, known);
  const before = known.get(info.id) ?? foundAbove(known, info);
  if (before?.head === at) return before.message;
  const isEarlier = before !== undefined && before.head < at;
  const holds = isEarlier && (await isVisibleAs(store, info.id, before.head, at));
  const after = holds ? before.head : 0;
  const { message = holds ? before.message : undefined, isOpen } = await search(store, info, {
    after,
    to: at,
    head: at,
  });
  // A fork from before keeps what was found further on.
  if (isOpen || (before !== undefined && !isEarlier)) return message;
  known.delete(info.id);
  known.set(info.id, { head: at, message });
  const [oldest] = known.keys();
  if (known.size > foundMax && oldest !== undefined) known.delete(oldest);
  return message;
}

/** What was found of the parent, for a fork that inherits all of it: positions up to the fork are the same entries. */
function foundAbove(
  known: ReadonlyMap<string, Found>,
  { parentId, floor, base }: SessionInfo,
): Found | undefined {
  const { head, message } = known.get(parentId ?? '') ?? {};
  if (head === undefined || message === undefined || floor > 0 || head > base) return undefined;
  return { head, message: { ...message, inherited: true } };
}

/**
 * Whether the entries visible at a position are the visible ones at a later one, too: no rewind between them goes back
 * past it.
 */
async function isVisibleAs(store: TapeStore, id: string, head: Seq, at: Seq): Promise<boolean> {
  const [range] = await store.views.ranges(id, { from: head, at });
  // A rewind entry hides itself.
  return range?.hiddenBy === undefined || range.hiddenBy === head;
}

/**
 * The last visible message that a run took up and did not fail with, after one position and up to another.
 * `head`: the position whose view counts (default: the head). `isOpen`: it has neither an answer nor a failure yet.
 */
async function search(
  store: TapeStore,
  { id }: SessionInfo,
  {
    after = 0,
    to: last,
    head = 'head',
  }: { readonly after?: Seq; readonly to: Seq; readonly head?: Seq | 'head' },
): Promise<{ readonly message?: AnsweredMessage; readonly isOpen?: boolean }> {
  let to = last;
  for (let searched = 0; searched < carriedMax && to > after; searched += pageSize) {
    const page: Entry[] = [];
    for await (const entry of store.entries.read(id, {
      kind: 'message',
      last: pageSize,
      from: after + 1,
      to,
    }))
      page.push(entry);
    for (const { seq, payload, meta, inherited, elsewhere } of page.toReversed()) {
      const isUserMessage = isObject(payload) && payload.role === 'user';
      const isAnswered = meta.run !== undefined || meta.model !== undefined || meta.settings !== undefined;
      if (!isUserMessage || !isAnswered) continue;
      const [range] = await store.views.ranges(id, { from: seq, at: head });
      if (range?.hiddenBy !== undefined) continue;
      const end = await firstEnd(store, id, { after: seq, to: last });
      if (end !== 'failure')
        return { message: { inherited, meta, ...(elsewhere && { elsewhere }) }, isOpen: end === undefined };
    }
    if (page.length < pageSize || page[0] === undefined) return {};
    to = page[0].seq - 1;
  }
  return {};
}

/** Whether a message has an answer or a failed run, whichever came first; undefined when it has neither. */
async function firstEnd(
  store: TapeStore,
  id: string,
  { after, to }: { readonly after: Seq; readonly to: Seq },
): Promise<'answer' | 'failure' | undefined> {
  if (after >= to) return undefined;
  for await (const { kind, name, payload } of store.entries.read(id, { from: after + 1, to })) {
    if (kind === 'message' && isObject(payload) && payload.role === 'assistant') return 'answer';
    if (kind === 'event' && name === 'run/error') return 'failure';
  }
  return undefined;
}
