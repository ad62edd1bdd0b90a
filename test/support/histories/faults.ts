import {
  type Entry,
  type Part,
  type SqliteTapeStore,
  type StoredMessage,
  type Target,
  type View,
  view,
} from '@tapedeck/tape';
import { isObject, noResult, type Selection, select } from '@tapedeck/tape/internal';
import type { CopiedSession } from '../copying-model.ts';
import { invalidities } from '../valid-messages.ts';
import type { Look } from './looks.ts';
import { situations } from './situations.ts';
import type { Tally } from './tally.ts';
import { repeated, sealsIn, wordsOf } from './words.ts';

/** Whose sealed parts each provider can read, besides its own. */
const reads: Readonly<Record<string, readonly string[]>> = {
  azure: ['openai'],
  vertex: ['anthropic', 'google'],
  google: ['google'],
};

interface Looked {
  readonly store: SqliteTapeStore;
  readonly session: CopiedSession;
  /** All entries that the session has, as they were when they were written. */
  readonly all: readonly Entry[];
  readonly look: Look;
  readonly tally: Tally;
}

/** The faults of the view of a session; empty when it is correct. */
export function faultsOf({ store, session, all, look, tally }: Looked): readonly string[] {
  const { policy, at, targets } = look;
  const entries = all.filter(({ seq }) => seq <= at);
  const before = JSON.stringify(entries);
  const shown = select(entries, policy);
  const expected = wordsOf('said', session.view(policy, at).join('\n')).join(' ');
  const read = [...store.views.entries(session.name, { policy, at: `@${at}` })];
  return [
    ...targets.flatMap((target) => {
      const whole = view(entries, { policy, target });
      const json = JSON.stringify(whole.messages);
      for (const what of situations(whole, { json, shown, look, target, session })) tally.count(what);
      return [
        ...invalidities(whole.messages),
        ...foreign(json, target),
        ...altered(whole.messages, before),
        ...told(json, expected),
        ...unanswered(json, shown),
        ...repeated(json).map((word) => `${word} is told twice`),
        ...wordsOf('unseen', json).map((word) => `${word} is shown`),
        ...different(whole, view(read, { policy, target })),
      ].map((fault) => `for ${JSON.stringify(target)}: ${fault}`);
    }),
    ...(JSON.stringify(entries) === before ? [] : ['the view changed what it was given']),
  ];
}

/** The entries that the store reads for a view must suffice for it. */
function different(whole: View, read: View): string[] {
  const same = read.digest === whole.digest && read.from === whole.from && read.to === whole.to;
  return same ? [] : [`what is read for it gives ${read.from}-${read.to} ${JSON.stringify(read.messages)}`];
}

/** Parts that are encrypted for other providers than the target. */
function foreign(json: string, { provider }: Target): string[] {
  const own = provider?.split('.')[0] ?? '';
  const allowed = [own, ...(reads[own] ?? [])];
  return [...sealsIn(json)].filter((seal) => !allowed.includes(seal)).map((seal) => `sealed for ${seal}`);
}

/** Signed or encrypted parts return as on the tape; a client-side call may have another id and other arguments. */
function altered(messages: readonly StoredMessage[], tape: string): string[] {
  return messages
    .flatMap(({ role, content }) => (role === 'assistant' ? content : []))
    .filter(
      (part) =>
        part.providerOptions !== undefined && (part.type !== 'tool-call' || part.providerExecuted === true),
    )
    .map((part) => JSON.stringify(part))
    .filter((part) => !tape.includes(part))
    .map((part) => `${part} is not as it was made`);
}

/** Every text that is to be shown is, in order, and no other. */
function told(json: string, expected: string): string[] {
  const found = wordsOf('said', json).join(' ');
  return found === expected ? [] : [`tells ${found}, not ${expected}`];
}

/** A result that belongs to one call, and follows it, is shown, unless its output is omitted. */
function unanswered(json: string, { entries, pruned }: Selection): string[] {
  const calls = entries.flatMap((entry) => clientIds(entry).map((id) => ({ id, seq: entry.seq })));
  const answered = new Set<string>();
  return entries.flatMap((entry) => {
    if (entry.kind !== 'tool-result' || !isObject(entry.payload)) return [];
    const id = String(entry.payload.toolCallId);
    const of = calls.filter((call) => call.id === id);
    if (of.length !== 1 || (of[0]?.seq ?? 0) > entry.seq || answered.has(id)) return [];
    answered.add(id);
    const [word = noResult] = wordsOf('output', JSON.stringify(entry.payload));
    return json.includes(word) !== pruned.has(entry.seq) ? [] : [`the result ${word} is not told`];
  });
}

function clientIds({ kind, meta, payload }: Entry): string[] {
  if (kind !== 'message' || meta.context === false || !isObject(payload) || payload.role !== 'assistant')
    return [];
  const parts = (Array.isArray(payload.content) ? payload.content : []) as unknown as Part[];
  return parts.flatMap((part) =>
    part.type === 'tool-call' && part.providerExecuted !== true ? [String(part.toolCallId)] : [],
  );
}
