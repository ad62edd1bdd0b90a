import { readdirSync } from 'node:fs';
import type { HomeStore } from '@tapedeck/tape';
import type { Home } from '../home.ts';

/**
 * Names the files of a home that may still contain an erased text: raw traffic of its sessions, and of those below, which
 * may have inherited it, and copies of the database from before a change of its format.
 * @param owners the ids of the sessions
 */
export async function trafficOf(
  store: HomeStore,
  home: Home,
  owners: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (owners.size === 0) return [];
  const { trafficFiles } = await import('@tapedeck/runtime/internal');
  const isBelow = (id: string): boolean => {
    if (owners.has(id)) return true;
    const parent = store.sessions.find(id)?.parentId;
    return parent !== undefined && isBelow(parent);
  };
  const traffic = trafficFiles(home.dir).filter(({ session }) => isBelow(session));
  const copies = (home.server === undefined ? readdirSync(home.dir) : []).filter((name) =>
    /^tape\.db\.schema-\d/.test(name),
  );
  return [...traffic.map(({ file }) => file), ...copies];
}

/** What may still contain an erased text, as the end of a line. */
export function mayContain(quotedBy: readonly string[]): string {
  return quotedBy.length === 0 ? '' : `; may still contain it: ${quotedBy.join(', ')}`;
}

/**
 * What is said where erased content may be left.
 * @param again what erases it once more, which writes a file anew
 */
export function contentLeft({ server }: Pick<Home, 'server'>, again: string): string {
  return server === undefined
    ? `The file or its WAL still has the content, because others use it or the disk is full: ${again}`
    : 'The server may still have the content, in rows that it has not vacuumed, in its log and in dumps: see docs/server.md';
}
