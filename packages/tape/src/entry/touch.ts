import type { Db } from '../sqlite/sqlite.ts';
import type { EntryKind, Meta, Seq } from './entry.ts';
import { isObject, type Json } from './json.ts';

/** Something that an entry read or wrote, beside being there: `state:key` of an anchor, `file:path` of a call. */
export interface Touch {
  readonly what: string;
  readonly wrote: boolean;
}

/** Names of anchors that are the store's own: their states are no one's work. */
const ownAnchors = /^(?:session|fork|merge)\/|^intention$/;

/**
 * What an entry touches: the keys of a state, and the paths that a call's tool declared (`meta.paths`, X57), so that a
 * merge finds conflicts in one seek for each. Pure.
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
  if (name === undefined || ownAnchors.test(name)) return [];
  return Object.keys(payload.state)
    .filter((key) => key !== 'summary')
    .map((key) => ({ what: `state:${key}`, wrote: true }));
}

function filesOf(paths: Json | undefined): string[] {
  const texts = Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  return [...new Set(texts)].map((path) => `file:${path}`);
}

/** Notes what the entry at a position touched, or what the child `via` did that was merged there. */
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
