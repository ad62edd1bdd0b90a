import { crc32 } from 'node:zlib';

/** Ids as numbers of 32 bits, behind others: two may have the same one, which is then taken for known. */
export function numbersOf(ids: Iterable<string>, before: Uint32Array = new Uint32Array(0)): Uint32Array {
  let all = before;
  let count = before.length;
  for (const id of ids) {
    if (count === all.length) {
      const larger = new Uint32Array(Math.ceil(count * 1.5) + 1024);
      larger.set(all);
      all = larger;
    }
    all[count] = crc32(id);
    count += 1;
  }
  return all.slice(0, count);
}

/** Whether an id is among those that numbers stand for. */
export function idsHave(ids: Uint32Array): (id: string) => boolean {
  const known = new Set(ids);
  return (id) => known.has(crc32(id));
}
