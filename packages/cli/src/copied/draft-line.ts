import type { Draft, Json, Seq } from '@tapedeck/tape';
import { isObject, isReservedAnchor, parseJson } from '@tapedeck/tape/internal';
import { assertDraft } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { decode } from '../input.ts';

/** A line that `tape log --jsonl` printed. */
export interface LoggedLine {
  readonly seq: Seq;
  /** The position that it refers to. */
  readonly ref: Seq | undefined;
  /** Whether the session wrote it, and did not inherit it. */
  readonly isOwn: boolean;
  /** Whether it states what the home did with the session: a copy has another history. */
  readonly isAct: boolean;
  /** The entry without its place; its payload is null when it was erased. */
  readonly draft: Draft;
}

/**
 * Reads one line: the draft that it is, or an entry of a log; undefined for a blank line.
 * @throws UsageError
 */
export function readDraft(bytes: Uint8Array, number: number): Draft | LoggedLine | undefined {
  const what = `line ${number}`;
  const fail = (why: string) => new UsageError(`cannot append: ${what}: ${why}`, { data: { line: number } });
  let text: string;
  try {
    text = decode(bytes, what);
  } catch {
    throw fail('it is not UTF-8');
  }
  if (text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = parseJson(text, what);
  } catch (error) {
    throw fail((error as Error).message.replace(/^cannot read line \d+: /, ''));
  }
  if (!isObject(value)) throw fail('it must be a JSON object');
  if (typeof value.hash === 'string' && typeof value.tape === 'string') return loggedLine(value, fail);
  if (isAnswer(value)) throw fail('what a call may do is answered with: tape approve');
  if (value.kind === 'rewind') throw fail('a rewind is a line of a log, or an act of its own: tape rewind');
  const draft = toDraft(value, fail);
  assertStorable(draft, fail);
  return draft;
}

function assertStorable(draft: Draft, fail: Fail): void {
  try {
    assertDraft(draft);
  } catch (error) {
    throw fail((error as Error).message.replace(/^cannot (?:append|store)(?: [^:]*)?: /, ''));
  }
}

type Fail = (why: string) => UsageError;

function loggedLine(value: Record<string, Json>, fail: Fail): LoggedLine {
  const { seq, ref, session, tape, absent, kind, payload } = value;
  if (absent === true) throw fail('its content is not here: a bundle did not bring it');
  if (!isSeq(seq) || seq < 1) throw fail('"seq" must be a position');
  if (ref !== undefined && (!isSeq(ref) || ref >= seq)) throw fail('"ref" must be a position before it');
  if (kind === 'rewind' && ref === undefined) throw fail('a rewind must have a "ref"');
  // The name of a tape is that of its session, after that of a realm, and where it is a later one with its number.
  const isOwn = /^[^:]*:(.*?)(?:~\d+)?$/s.exec(String(tape))?.[1] === session;
  const draft = toDraft(unplaced(value), fail);
  const isAct = isOfAct(value) || isAnswer(value);
  if (!isAct && payload !== null && kind !== 'rewind') assertStorable(draft, fail);
  return { seq, ref, isOwn, isAct, draft };
}

function isSeq(value: Json | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isOfAct({ kind, name }: Record<string, Json>): boolean {
  if (kind === 'status' || kind === 'redaction') return true;
  return kind === 'anchor' && typeof name === 'string' && isReservedAnchor(name);
}

/** Whether an entry approves a call, once or for good: a person does, and a text that is copied or written does not. */
function isAnswer({ name, payload }: Record<string, Json>): boolean {
  if (name === 'permission/granted') return true;
  return name === 'call/answered' && isObject(payload) && payload.approved === true;
}

/**
 * An entry of a log without its place, time and hash, which the store gives, and with the key of its writer.
 */
function unplaced(entry: Record<string, Json>): Record<string, Json> {
  const { session, tape, seq, at, source_at, hash, ref, key, adopted, absent, ...rest } = entry;
  // Other keys are of the store: it uses them to find what it has done.
  return typeof key === 'string' && key.startsWith(callerPrefix)
    ? { ...rest, key: key.slice(callerPrefix.length) }
    : rest;
}

/** The store adds it to the keys of callers. */
export const callerPrefix = 'u:';

const fields = new Set(['kind', 'role', 'content', 'payload', 'key', 'name', 'meta', 'mark']);

function toDraft(value: Record<string, Json>, fail: Fail): Draft {
  const unknown = Object.keys(value).find((field) => !fields.has(field));
  if (unknown !== undefined) throw fail(`unknown field ${JSON.stringify(unknown.slice(0, 40))}`);
  const { kind = 'message', role = 'user', content, payload, key, name, meta, mark } = value;
  if (typeof kind !== 'string') throw fail('"kind" must be a string');
  for (const [field, text] of [
    ['key', key],
    ['name', name],
  ] as const)
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      throw fail(`"${field}" must be a non-empty string`);
  if (meta !== undefined && !isObject(meta)) throw fail('"meta" must be an object');
  if (content === undefined && payload === undefined) throw fail('it has neither "content" nor "payload"');
  if (content !== undefined && payload !== undefined) throw fail('it has both "content" and "payload"');
  const isMarked = kind === 'anchor' || kind === 'compaction';
  const turn = kind === 'rewind' || kind === 'redaction' ? kind : undefined;
  if (mark !== undefined && mark !== turn && (!isMarked || (mark !== 'anchor' && mark !== 'boundary')))
    throw fail('"mark" must be "anchor" or "boundary", and needs "kind": "anchor"');
  return {
    kind: kind as Draft['kind'],
    payload: 'payload' in value ? payload : kind === 'message' ? { role, content } : content,
    ...(typeof key === 'string' && { key }),
    ...(typeof name === 'string' && { name }),
    ...(isObject(meta) && { meta }),
    ...(isMarked && { mark: mark === 'boundary' ? 'boundary' : 'anchor' }),
    ...(turn !== undefined && { mark: turn }),
  };
}
