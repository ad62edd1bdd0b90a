import type { HomeStore, JsonObject, Seq } from '@tapedeck/tape';
import { importedEvent, isObject } from '@tapedeck/tape/internal';
import type { Group } from './group.ts';

/** A conversation of an import that is no subagent. */
export interface Kin {
  readonly isMain: boolean;
  /** The session of a tool from which it came. */
  readonly source: string;
  /** Its tool, and the id that this gave it. */
  readonly format: string;
  readonly session: string;
  /** What the first message that it shows says, and the key of that. */
  beginning?: string;
  shown?: string;
  /** Of one that was resumed under new ids, the key of its first message in its source. */
  resumed?: string | undefined;
  /** The key of that message here, where it was looked for. */
  inherits?: string | undefined;
  /** Its compactions, and where they are. */
  readonly compactions: Map<string, Seq>;
  /** How far its tape was read for compactions and rewinds. */
  read: Seq;
  /** Whether it, or what it inherits, was rewound. */
  isRewound: boolean;
  /** How often it was written. */
  writes: number;
  /** With which others it has something in common. */
  readonly groups: Set<Group>;
}

/** Where a conversation of an import comes from; undefined for a subagent, and for any other session. */
export function originIn(store: HomeStore, id: string): JsonObject | undefined {
  if (store.sessions.find(id)?.kind !== 'session') return undefined;
  const [origin] = store.entries.read(id, { own: true, name: importedEvent, limit: 1 });
  return isObject(origin?.payload) ? origin.payload : undefined;
}
