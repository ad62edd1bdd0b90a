import type { Entry, Part, Seq, StoredMessage, Target } from '@tapedeck/tape';
import {
  continueText,
  fitTo,
  isClientCall,
  noStart,
  omittedMessages,
  prunedOutputs,
  renderEntry,
  renderState,
  select,
} from '@tapedeck/tape/internal';
import { type ExportSource, shownEntries } from './contexts.ts';

/** A step of a conversation, in the form from which another agent continues. */
export type Turn = SaidTurn | BoundaryTurn;

/** A message, with the results of its calls. */
export interface SaidTurn {
  readonly kind: 'said';
  /** The entry that it comes from. */
  readonly entry: Entry;
  /** Whether that entry is there already, or only makes this text necessary. */
  readonly again: boolean;
  readonly message: StoredMessage;
  readonly results: readonly ResultOfTurn[];
  /** The hashes of the messages since the turn before it of which nothing is left. */
  readonly passed: readonly string[];
}

/** The result of a call; one that the tape lacks has no entry. */
export interface ResultOfTurn {
  readonly part: Part;
  readonly entry: Entry | undefined;
}

/** A compaction or a handoff: what is before the first kept position is replaced by its text. */
export interface BoundaryTurn {
  readonly kind: 'boundary';
  readonly entry: Entry;
  /** What a view begins with; undefined for an empty state. */
  readonly text: string | undefined;
  /** What stays in view behind that, in order; among it what stands between two turns there alone. */
  readonly kept: readonly SaidTurn[];
  readonly passed: readonly string[];
}

type OpenBoundary = Omit<BoundaryTurn, 'kept' | 'passed'> & { readonly keep: Seq };

interface Open {
  readonly entry: Entry;
  readonly again: boolean;
  readonly rendered: RenderedMessage;
  readonly results: { readonly entry: Entry; readonly rendered: RenderedResult }[];
}

type Rendered = NonNullable<ReturnType<typeof renderEntry>>;
type RenderedMessage = Extract<Rendered, { type: 'message' }>;
type RenderedResult = Extract<Rendered, { type: 'result' }>;

/**
 * The conversation that a session shows, as turns that a target accepts: as `view` makes them valid, but entry by entry, and
 * with what is before a boundary.
 */
export async function turnsOf(source: ExportSource, target: Target): Promise<readonly Turn[]> {
  const { start, entries } = select(await Array.fromAsync(shownEntries(source)), 'full');
  const pruned = prunedOutputs(entries);
  const omitted = omittedMessages(entries);
  const turns: (Open | OpenBoundary)[] = [];
  const begun = startOf(start);
  if (begun !== undefined) turns.push(begun);
  let intention: Open | undefined;
  for (const entry of entries) {
    if (entry.mark === 'boundary') {
      const keep = entry.ref ?? entry.seq;
      const text = renderState(entry)?.content[0]?.text;
      turns.push({ kind: 'boundary', entry, keep, text: typeof text === 'string' ? text : undefined });
      // The task of a fork stays with it.
      if (intention !== undefined && keep > intention.entry.seq) turns.push({ ...intention, again: true });
      continue;
    }
    if (entry.kind === 'message' && omitted.has(entry.seq)) continue;
    const rendered = renderEntry(entry, pruned.get(entry.seq));
    if (rendered === undefined) continue;
    if (rendered.type === 'result') {
      const asked = turns.findLast((turn): turn is Open => !('kind' in turn) && waitsFor(turn, rendered));
      asked?.results.push({ entry, rendered });
      continue;
    }
    const turn: Open = { entry, again: false, rendered, results: [] };
    if (entry.kind === 'anchor' && !entry.inherited) intention = turn;
    turns.push(turn);
  }
  return fitted(turns, { target, start });
}

/** What a fork was given when it began, which its views begin with. */
function startOf(start: Entry | undefined): Open | undefined {
  const message = renderState(start);
  if (start === undefined || message === undefined) return undefined;
  return {
    entry: start,
    again: false,
    rendered: { type: 'message', message, provider: undefined },
    results: [],
  };
}

/** Whether a message has a call without a result yet. */
function waitsFor({ rendered, results }: Open, { part }: RenderedResult): boolean {
  const id = String(part.toolCallId);
  const calls = rendered.message.content.filter((one) => isClientCall(one) && one.toolCallId === id);
  return calls.length > results.filter((one) => String(one.rendered.part.toolCallId) === id).length;
}

/** Makes each turn valid, and adds what has to be between two of them. */
function fitted(
  turns: readonly (Open | OpenBoundary)[],
  { target, start }: { readonly target: Target; readonly start: Entry | undefined },
): readonly Turn[] {
  const made: Turn[] = [];
  let passed: string[] = [];
  const taken = new Set<string>();
  const authors = authorsOf(turns);
  for (const [i, turn] of turns.entries()) {
    if ('kind' in turn) {
      made.push({ ...boundaryOf(turn, made, start), passed });
      passed = [];
      continue;
    }
    const said = fittedTurn(turn, { target, taken, author: authors.get(i) });
    if (said === undefined) {
      if (!turn.again) passed.push(turn.entry.hash);
      continue;
    }
    if (said.message.role === 'assistant') {
      const last = made.at(-1);
      const before = last?.kind === 'boundary' ? last.kept.at(-1) : last;
      if (isUnanswered(before)) made.push(between(said.entry, continueText));
      else if (before === undefined && (last?.kind !== 'boundary' || last.text === undefined))
        made.push(between(said.entry, noStart));
    }
    made.push({ ...said, passed });
    passed = [];
  }
  return made;
}

/** A boundary, with what it keeps of the turns before it. */
function boundaryOf(
  { kind, entry, text, keep }: OpenBoundary,
  made: readonly Turn[],
  start: Entry | undefined,
): Omit<BoundaryTurn, 'passed'> {
  const kept: SaidTurn[] = [];
  for (const turn of made) {
    // What a fork was given begins its views until there is another beginning.
    const isKept =
      turn.kind === 'said' && turn.entry !== start && turn.entry.seq >= keep && turn.entry.seq < entry.seq;
    if (!isKept) continue;
    // What stands between two turns depends on what else does: an earlier boundary, or the task of a fork, does no more.
    const isBehindAnswer = isUnanswered(kept.at(-1));
    if (turn.again && (turn.entry.kind !== 'message' || !isBehindAnswer)) continue;
    if (turn.message.role === 'assistant' && isBehindAnswer) kept.push(between(turn.entry, continueText));
    kept.push(turn);
  }
  const begins = text ?? (kept[0]?.message.role === 'assistant' ? noStart : undefined);
  return { kind, entry, text: begins, kept };
}

/** Whether a turn is an answer that no other answer can follow. */
function isUnanswered(turn: SaidTurn | undefined): boolean {
  return turn?.message.role === 'assistant' && turn.results.length === 0;
}

function between(entry: Entry, text: string): SaidTurn {
  const message = { role: 'user', content: [{ type: 'text', text }] } as const;
  return { kind: 'said', entry, again: true, message, results: [], passed: [] };
}

/** One turn as the target accepts it; undefined when nothing of it is left. */
function fittedTurn(
  { entry, again, rendered, results }: Open,
  {
    target,
    taken,
    author,
  }: { readonly target: Target; readonly taken: Set<string>; readonly author: string | undefined },
): Omit<SaidTurn, 'passed'> | undefined {
  const { role } = rendered.message;
  // Something follows each answer, at the latest the next prompt: a tool of the provider that did not end will not go on.
  const behind = role === 'assistant' ? [nextPrompt] : [];
  const messages = fitTo([rendered, ...results.map((one) => one.rendered), ...behind], target);
  const message = messages.find((one) => one.role === role);
  const answers = messages.find(({ role }) => role === 'tool')?.content ?? [];
  if (message === undefined) return undefined;
  const ids = new Map<string, string>();
  const content = message.content.map((part) => (isClientCall(part) ? renamed(part, ids, taken) : part));
  const onTape = rendered.message.content.filter(isClientCall).map((part) => String(part.toolCallId));
  const left = [...results];
  const answered = answers.map((part, n): ResultOfTurn => {
    const at = left.findIndex((one) => String(one.rendered.part.toolCallId) === onTape[n]);
    const [found] = at === -1 ? [] : left.splice(at, 1);
    const id = String(part.toolCallId);
    return { part: { ...part, toolCallId: ids.get(id) ?? id }, entry: found?.entry };
  });
  const named = author === undefined ? content : [{ type: 'text', text: `From ${author}:` }, ...content];
  return { kind: 'said', entry, again, message: { ...message, content: named }, results: answered };
}

const nextPrompt: RenderedMessage = {
  type: 'message',
  message: { role: 'user', content: [{ type: 'text', text: continueText }] },
  provider: undefined,
};

/** Gives a call an id that no earlier one has: some servers number the calls of each answer anew. */
function renamed(part: Part, ids: Map<string, string>, taken: Set<string>): Part {
  const id = String(part.toolCallId);
  let free = id;
  for (let n = 2; taken.has(free); n += 1) free = `${id.slice(0, 36)}_${n}`;
  taken.add(free);
  ids.set(id, free);
  return free === id ? part : { ...part, toolCallId: free };
}

/** The author of each message of the user next to one that another author wrote. */
function authorsOf(turns: readonly (Open | OpenBoundary)[]): ReadonlyMap<number, string> {
  const authors = new Map<number, string>();
  const isUser = (turn: Open | OpenBoundary | undefined): turn is Open =>
    turn !== undefined && !('kind' in turn) && turn.rendered.message.role === 'user';
  for (let i = 0; i < turns.length; i += 1) {
    let end = i;
    while (isUser(turns[end])) end += 1;
    const run = turns.slice(i, end).filter(isUser);
    const ids = new Set(run.flatMap(({ rendered }) => rendered.author?.id ?? []));
    if (ids.size > 1)
      for (const [n, { rendered }] of run.entries())
        if (rendered.author !== undefined) authors.set(i + n, rendered.author.label);
    i = Math.max(i, end - 1);
  }
  return authors;
}
