import type { SessionInfo } from '@tapedeck/tape';

/** Folders that stand in each other at most: a path has at most 4,096 bytes on Linux, and 1,024 on macOS. */
const deepest = 12;
/** Characters of the name of a session that the name of its folder begins with. */
const nameMax = 30;

type Named = Pick<SessionInfo, 'session' | 'id' | 'parentId'>;

/**
 * The folders of the sessions of a tree, below the one of its root: that of a child is in that of its parent. A session that
 * is deeper than folders can be has its folder beside those of the children of the root.
 */
export class Folders {
  readonly #paths: Map<string, readonly string[]>;

  constructor(root: Pick<Named, 'id'>) {
    this.#paths = new Map([[root.id, []]]);
  }

  /** The folders that lead to a session. Its parent comes before it. */
  of(session: Named): readonly string[] {
    const { id, parentId = '' } = session;
    const known = this.#paths.get(id);
    if (known !== undefined) return known;
    const above = this.#paths.get(parentId) ?? [];
    const path = [...(above.length < deepest ? above : []), folderName(session)];
    this.#paths.set(id, path);
    return path;
  }
}

/**
 * The name of the folder of a session: the beginning of its name as every file system takes it, and its ULID, so that
 * no two sessions and no file of a folder have one name.
 */
function folderName({ session, id }: Pick<Named, 'session' | 'id'>): string {
  const begin = session
    .slice(0, nameMax)
    .toLowerCase()
    .replace(/[^a-z0-9_.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return begin === '' ? id : `${begin}-${id}`;
}
