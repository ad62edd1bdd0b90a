import type { Draft, Json } from '@tapedeck/tape';
import { isObject, isReservedAnchor, parseJson } from '@tapedeck/tape/internal';
import { assertDraft } from '@tapedeck/tape/store';
import { UsageError } from '../errors/kinds.ts';
import { decode } from '../input.ts';

/**
 * The draft of one line, also of one that `tape log --jsonl` printed; undefined for a blank line, and `act` for an entry
 * of a log that an act other than `append` writes for each session.
 * @throws UsageError
 */
export function readDraft(bytes: Uint8Array, number: number): Draft | 'act' | undefined {
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
  const isLogged = typeof value.hash === 'string' && typeof value.tape === 'string';
  if (isLogged && (isOfAct(value) || isAnswer(value))) return 'act';
  if (isAnswer(value)) throw fail('what a call may do is answered with: tape approve');
  const draft = toDraft(isLogged ? unplaced(value, fail) : value, fail);
  try {
    assertDraft(draft);
  } catch (error) {
    throw fail((error as Error).message.replace(/^cannot (?:append|store)(?: [^:]*)?: /, ''));
  }
  return draft;
}

/** Whether an entry states what the home did with its session: a copy has another history. */
function isOfAct({ kind, name }: Record<string, Json>): boolean {
  return kind === 'status' || (kind === 'anchor' && typeof name === 'string' && isReservedAnchor(name));
}

/** Whether an entry approves a call, once or for good: a person does, and a text that is copied or written does not. */
function isAnswer({ name, payload }: Record<string, Json>): boolean {
  if (name === 'permission/granted') return true;
  return name === 'call/answered' && isObject(payload) && payload.approved === true;
}

/**
 * An entry of a log without its place, time and hash, which the store gives, and with the key of its writer.
 */
function unplaced(entry: Record<string, Json>, fail: (why: string) => UsageError): Record<string, Json> {
  const { session, tape, seq, at, source_at, hash, ref, key, adopted, absent, ...rest } = entry;
  if (absent === true) throw fail('its content is not here: a bundle did not bring it');
  if (ref !== undefined)
    throw fail(`the ${String(rest.kind)} refers to position ${String(ref)} of its own tape`);
  // Other keys are of the store: it uses them to find what it has done.
  return typeof key === 'string' && key.startsWith(callerPrefix)
    ? { ...rest, key: key.slice(callerPrefix.length) }
    : rest;
}

const callerPrefix = 'u:';

const fields = new Set(['kind', 'role', 'content', 'payload', 'key', 'name', 'meta', 'mark']);

function toDraft(value: Record<string, Json>, fail: (why: string) => UsageError): Draft {
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
  if (mark !== undefined && (!isMarked || (mark !== 'anchor' && mark !== 'boundary')))
    throw fail('"mark" must be "anchor" or "boundary", and needs "kind": "anchor"');
  return {
    kind: kind as Draft['kind'],
    payload: 'payload' in value ? payload : kind === 'message' ? { role, content } : content,
    ...(typeof key === 'string' && { key }),
    ...(typeof name === 'string' && { name }),
    ...(isObject(meta) && { meta }),
    ...(isMarked && { mark: mark === 'boundary' ? 'boundary' : 'anchor' }),
  };
}
