import type { Db } from '../db/db.ts';
import type { EntryKind, Meta, Seq } from './entry.ts';
import { isObject, type Json } from './json.ts';

/** Something that an entry read or wrote: `state:key` of an anchor's state, or `file:path` of a tool call. */
export interface Touch {
  readonly what: string;
  readonly wrote: boolean;
}

/** Names of anchors that the store itself writes: their states are no work of a session. */
const storeAnchors = /^(?:session|fork|merge)\/|^intention$/;

/**
 * Returns what an entry touches: the keys of an anchor's state, and the paths that the tool of a call
 * declared (`meta.paths`). A merge finds conflicts with one seek per touch. Pure.
 */
export function touchesOf(entry: {
  readonly kind: EntryKind;
  readonly name?: string | undefined;
  readonly payload: unknown;
  readonly meta?: Meta | undefined;
}): readonly Touch[] {
  const { kind, name, payload, meta } = entry;
  if (kind === 'tool-result' && isObject(meta?.paths)) {
    const { read, write } = meta.paths;
    const wrote = filesOf(write);
    return [
      ...wrote.map((what) => ({ what, wrote: true })),
      ...filesOf(read)
        .filter((what) => !wrote.includes(what))
        .map((what) => ({ what, wrote: false })),
    ];
  }
  if (kind !== 'anchor' || !isObject(payload) || !isObject(payload.state)) return [];
  if (name === undefined || storeAnchors.test(name)) return [];
  // JSON has no undefined values.
  return Object.entries(payload.state)
    .filter(([key, value]) => key !== 'summary' && value !== undefined)
    .map(([key]) => ({ what: `state:${key}`, wrote: true }));
}

function filesOf(paths: Json | undefined): string[] {
  const texts = Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  return [...new Set(texts)].map((path) => `file:${path}`);
}

/** Records the touches of the entry at a position, or of the child `via` whose merge is there. */
export function saveTouches(
  db: Db,
  tapeId: number,
  { seq, via }: { readonly seq: Seq; readonly via?: string },
  touches: readonly Touch[],
): void {
  for (const { what, wrote } of touches)
    db.run(
      `INSERT INTO touch (tape_id, what, seq, wrote, via) VALUES (@tapeId, @what, @seq, @wrote, @via)
         ON CONFLICT DO NOTHING`,
      { tapeId, what, seq, wrote: wrote ? 1 : 0, via: via ?? null },
    );
}
