/**
 * Where each part of a view comes from: the session on whose tape it is, the turn, the run and the model that made it, the
 * author of what a user wrote, and the sessions whose work it brings. Reads only, and loads no AI SDK. Imports `trace`, `ui`,
 * for turns, and `store-of`.
 */
import {
  type Entry,
  type Seq,
  type SessionInfo,
  type TapeStore,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import {
  authorOf,
  callText,
  isObject,
  lastCallWithin,
  lastPolicy,
  renderState,
} from '@tapedeck/tape/internal';
import { type StoreSource, storeOf } from '../store-of.ts';
import { isOfImport, mergesInto, sourcesOf, type TraceSource } from '../trace/sources.ts';
import { lastTurn, turnsOf } from '../ui/turns.ts';

/** A part of a view, and what its entry and the lineage record of its making. */
export interface BlamedPart {
  readonly seq: Seq;
  /** A message, the result of a tool, the task of a fork, or the summary or state that begins the view. */
  readonly what: 'message' | 'result' | 'task' | 'summary';
  readonly role: 'user' | 'assistant' | 'tool';
  /** The session on whose own tape it is, and whether it is another than the one of the view. */
  readonly session: string;
  readonly inherited: boolean;
  /** The turn that it is of: the position of the message or the task that began it. */
  readonly turn?: Seq;
  /** The run that wrote it. */
  readonly run?: string;
  /** The model of an answer, or of a summary. */
  readonly model?: string;
  /** The author that a message of a user names. */
  readonly author?: string;
  /** Where a message came from, such as `cli` or `merge`. */
  readonly source?: string;
  /** The tool of a result. */
  readonly tool?: string;
  /** The session that wrote the summary. */
  readonly summarizer?: string;
  /** The children whose work it brings: see `trace`. */
  readonly from: readonly TraceSource[];
  readonly text: string;
}

/** The parts of a view, in order. */
export interface Blame {
  readonly session: string;
  /** The SHA-256 of the messages of the view. */
  readonly digest: string;
  readonly parts: readonly BlamedPart[];
}

/** Which view to look at. */
export interface BlameOptions {
  /** Default: that of the last model call, else `last-boundary`. */
  readonly policy?: ViewPolicy;
}

/**
 * Reports which session, turn, run and model made each part of the view of a session. What no tape records is absent.
 * @throws TAPE_NO_SESSION, TAPE_BAD_POLICY, TAPE_NO_ANCHOR; TAPE_CORRUPT
 *
 * @example
 * ```ts
 * import { blame } from '@tapedeck/runtime';
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * store.lineage.fork('main', { name: 'idea' });
 * const { parts } = await blame(store, 'idea');
 * console.log(parts[0]?.session, parts[0]?.inherited); // main true
 * ```
 */
export async function blame(
  source: StoreSource,
  session: string,
  options: BlameOptions = {},
): Promise<Blame> {
  const store = storeOf(source, 'blame a view');
  // Throws the error with the nearest names.
  await store.entries.resolve(session, 'head');
  const line = await lineOf(store, session);
  const [info] = line;
  if (info === undefined) throw new TypeError(`session ${session} has no row, but its head resolved`);
  const policy = options.policy ?? (await policyOfLastCall(store, info.id));
  const entries = await Array.fromAsync(store.views.entries(info.id, { policy }));
  const made = view(entries, { policy });
  const shown = new Set(made.explain().flatMap(({ seq, in: isIn }) => (isIn ? seq : [])));
  const known = new Map<string, Bringing>();
  const turns = await turnsIn(
    store,
    info.id,
    entries.filter(({ seq }) => shown.has(seq)),
  );
  const parts: BlamedPart[] = [];
  for (const entry of entries) {
    if (!shown.has(entry.seq)) continue;
    const owner = line.find(({ base }) => entry.seq > base) ?? info;
    const part = partOf(entry, owner);
    if (part === undefined) continue;
    const from = (await brings(store, { entry, owner, known }))
      ? await sourcesOf({ store, seen: new Set() }, owner, entry)
      : [];
    const turn = part.what === 'summary' ? undefined : turns.get(entry.seq);
    parts.push({ ...part, inherited: owner !== info, ...(turn !== undefined && { turn }), from });
  }
  // The state of a boundary begins the view, also where entries before it were kept.
  parts.sort((a, b) => Number(b.what === 'summary') - Number(a.what === 'summary'));
  return { session: info.session, digest: made.digest, parts };
}

/** The positions where the turns of entries began. The first of them can be in a turn that began before the view. */
async function turnsIn(
  store: TapeStore,
  id: string,
  shown: readonly Entry[],
): Promise<ReadonlyMap<Seq, Seq>> {
  const begun = new Map<Seq, Seq>();
  for (const { opening, entries } of turnsOf(shown)) {
    const [first] = opening === undefined ? entries : [opening];
    if (first === undefined) continue;
    const at = opening?.seq ?? (await lastTurn(store, id, { to: first.seq }))?.opening?.seq;
    if (at === undefined) continue;
    for (const { seq } of [first, ...entries]) begun.set(seq, at);
  }
  return begun;
}

async function policyOfLastCall(store: TapeStore, id: string): Promise<ViewPolicy> {
  return lastPolicy(await Array.fromAsync(store.entries.read(id, { kind: 'message', last: lastCallWithin })));
}

/** A session and its ancestors, nearest first. */
async function lineOf(store: TapeStore, session: string): Promise<SessionInfo[]> {
  const line: SessionInfo[] = [];
  let at = await store.sessions.find(session);
  while (at !== undefined) {
    line.push(at);
    at = at.parentId === undefined ? undefined : await store.sessions.find(at.parentId);
  }
  return line;
}

/** What of a session brings the work of its children. */
interface Bringing {
  /** The calls that started some. */
  readonly calls: ReadonlySet<string>;
  /** The positions at which results of some came back, before an import merged them. */
  readonly received: ReadonlySet<Seq>;
}

/**
 * Whether an entry brings the work of children: the message of a merge, the result of a call that started some, or what an
 * import found to have brought the result of one.
 */
async function brings(
  store: TapeStore,
  { entry, owner, known }: { entry: Entry; owner: SessionInfo; known: Map<string, Bringing> },
): Promise<boolean> {
  const { kind, meta, payload, seq } = entry;
  if (meta.source === 'merge') return true;
  const call = kind === 'tool-result' && isObject(payload) ? String(payload.toolCallId) : undefined;
  if (call === undefined && !isOfImport(entry)) return false;
  const { calls, received } = known.get(owner.id) ?? (await bringingOf(store, owner));
  known.set(owner.id, { calls, received });
  return received.has(seq) || (call !== undefined && calls.has(call));
}

async function bringingOf(store: TapeStore, owner: SessionInfo): Promise<Bringing> {
  const children = await store.sessions.list({ parent: owner.id, all: true });
  const received = new Set<Seq>();
  for (const child of children.filter(({ delivery }) => delivery !== undefined))
    for (const { received: at } of await mergesInto(store, child, owner))
      if (at !== undefined) received.add(at);
  return { calls: new Set(children.flatMap(({ spawnCall }) => spawnCall ?? [])), received };
}

/** What the entry itself records. Undefined for a boundary whose state is empty, which begins the view without a text. */
function partOf(entry: Entry, { session }: SessionInfo): Omit<BlamedPart, 'inherited' | 'from'> | undefined {
  const { seq, kind, meta, payload } = entry;
  const content = isObject(payload) ? payload : {};
  const facts = {
    seq,
    session,
    ...textField('run', meta.run),
    ...textField('model', meta.model),
    ...textField('source', meta.source),
  };
  if (kind === 'message' && content.role === 'assistant')
    return { ...facts, what: 'message', role: 'assistant', text: textIn(content.content) };
  if (kind === 'message') {
    const author = authorOf(meta);
    const named = author === undefined || author.id === '' ? {} : { author: author.label };
    return { ...facts, ...named, what: 'message', role: 'user', text: textIn(content.content) };
  }
  if (kind === 'tool-result')
    return {
      ...facts,
      what: 'result',
      role: 'tool',
      ...textField('tool', content.toolName),
      text: isObject(content.output) ? textIn(content.output.value) : '',
    };
  const state = isObject(content.state) ? content.state : {};
  if (entry.name === 'intention')
    return { ...facts, what: 'task', role: 'user', text: textIn(state.next_steps) };
  if (renderState(entry) === undefined) return undefined;
  const summarizer = isObject(state.summarizer) ? state.summarizer.session : undefined;
  const text = textIn(state.summary) || JSON.stringify(state);
  return { ...facts, what: 'summary', role: 'user', ...textField('summarizer', summarizer), text };
}

function textField<Name extends string>(name: Name, value: unknown): { readonly [N in Name]?: string } {
  return (typeof value === 'string' ? { [name]: value } : {}) as { readonly [N in Name]?: string };
}

/** The text of a content, with the calls of an answer. */
function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined ? '' : JSON.stringify(content);
  return content
    .flatMap((part: unknown) => {
      if (!isObject(part)) return [];
      const { type, text } = part;
      if (type === 'tool-call') return callText(part);
      return type !== 'reasoning' && typeof text === 'string' ? text : [];
    })
    .join(' ');
}
