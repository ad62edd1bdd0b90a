import { type Pack, packNumber } from './packs.ts';

/** An entry of the tree in which a commit has its packs. */
export interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly object: string;
  readonly name: string;
}

/** A pack, and what it is in its repository. */
export interface GitPack extends Pack {
  readonly entry: TreeEntry;
}

/** Reads what `git ls-tree -z -l` prints of a tree. What has not the name of a pack stays in the tree, and is no pack. */
export function readTree(printed: string): {
  readonly entries: readonly TreeEntry[];
  readonly packs: readonly GitPack[];
} {
  const found = printed.split('\0').flatMap((line) => {
    const [, mode, type, object, size, name] = /^(\d+) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)$/s.exec(line) ?? [];
    if (mode === undefined || type === undefined || object === undefined || name === undefined) return [];
    return [{ entry: { mode, type, object, name }, bytes: size === '-' ? 0 : Number(size) }];
  });
  const packs = found.flatMap(({ entry, bytes }) => {
    const number = packNumber(entry.name);
    return number === undefined ? [] : [{ number, name: entry.name, bytes, entry }];
  });
  return {
    entries: found.map(({ entry }) => entry),
    packs: packs.toSorted((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1)),
  };
}

/** The text of a tree for `git mktree -z`. */
export function treeText(entries: readonly TreeEntry[]): string {
  return entries.map(({ mode, type, object, name }) => `${mode} ${type} ${object}\t${name}\0`).join('');
}

/** What an entry is that is no file. */
export function otherThanFile({ mode, type }: TreeEntry): string | undefined {
  if (mode === '120000') return 'a symbolic link';
  if (type === 'tree') return 'a directory';
  return type === 'blob' ? undefined : 'a submodule';
}
