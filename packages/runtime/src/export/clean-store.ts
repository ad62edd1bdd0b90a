import type { Entry, Json, JsonObject, Redact, Secret, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject, maskFor, redactorFor } from '@tapedeck/tape/internal';
import { isTextRef, restoreBlobs, type Sequence, type TextRef, wrapStore } from '@tapedeck/tape/store';

/** Which secrets are replaced. */
export interface CleanOptions {
  readonly secrets: readonly Secret[];
  readonly redact: Redact;
}

/** A store as an export reads it, and how many entries, files and titles of it had a secret so far. */
export interface CleanStore {
  readonly store: TapeStore;
  withheld(): number;
}

/**
 * A store whose reads give large outputs of tools whole, unless views are to show them as models got them, and, with options,
 * entries, files and titles without secrets: each is replaced by `[secret NAME]`, and all around it stays.
 */
export function cleanStore(
  store: TapeStore,
  options: CleanOptions | undefined,
  { isWhole = true }: { readonly isWhole?: boolean } = {},
): CleanStore {
  const found = new Set<string>();
  const clean = options === undefined ? <T>(value: T): T => value : cleaner(options);
  const cleaned = async (entry: Entry): Promise<Entry> => {
    const whole = isWhole ? await wholeOutput(store, entry.payload) : entry.payload;
    const [payload, meta] = [clean(whole), clean<JsonObject>(entry.meta)];
    if (payload !== whole || meta !== entry.meta) found.add(`${entry.tape}@${entry.seq}`);
    return payload === entry.payload && meta === entry.meta ? entry : { ...entry, payload, meta };
  };
  async function* entries(read: Sequence<Entry>): AsyncGenerator<Entry> {
    for await (const entry of read) yield await cleaned(entry);
  }
  const blob = async (given: Uint8Array | PromiseLike<Uint8Array>, hash: unknown): Promise<Uint8Array> => {
    const bytes = await given;
    const now = clean(bytes);
    if (now !== bytes) found.add(String(hash));
    return now;
  };
  const titled = async (read: unknown): Promise<SessionInfo | undefined> => {
    const info = (await read) as SessionInfo | undefined;
    const title = clean(info?.title);
    if (info === undefined || title === undefined || title === info.title) return info;
    found.add(`${info.id}:title`);
    return { ...info, title };
  };
  const one = wrapStore(store, ({ method, args, act }) => {
    if (method === 'sessions.find') return titled(act());
    if (method === 'entries.read' || method === 'views.entries') return entries(act() as Sequence<Entry>);
    if (method === 'entries.blob') return blob(act() as Uint8Array, args[0]);
    return act();
  });
  return { store: one, withheld: () => found.size };
}

/** Replaces secrets in a value: known ones, and what has the form of one. Returns the same value when it finds no secret. */
export function cleaner({ secrets, redact }: CleanOptions): <T>(value: T) => T {
  const mask = maskFor(secrets);
  const redactor = redactorFor(typeof redact === 'object' ? { ...redact, in: 'all' } : 'all');
  return (value) => {
    const masked = mask?.value(value) ?? value;
    return redactor?.whole(masked).value ?? masked;
  };
}

/** The payload of a result with its output whole: a large one is stored beside the entry. */
async function wholeOutput(store: TapeStore, payload: Json): Promise<Json> {
  if (!isObject(payload) || !isObject(payload.output)) return payload;
  const { value } = payload.output;
  const text = async (ref: TextRef): Promise<Json> => {
    const bytes = await store.entries.blob(ref.hash);
    return restoreBlobs(ref, () => bytes) as Json;
  };
  if (isTextRef(value)) return { ...payload, output: { ...payload.output, value: await text(value) } };
  if (!Array.isArray(value) || !value.some((part) => isObject(part) && isTextRef(part.text))) return payload;
  const parts = value.map(async (part) =>
    isObject(part) && isTextRef(part.text) ? { ...part, text: await text(part.text) } : part,
  );
  return { ...payload, output: { ...payload.output, value: await Promise.all(parts) } };
}
