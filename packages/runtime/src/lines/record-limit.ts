/** So few records are read whatever they say. */
const free = 10_000;

/** A file has no more: what is kept of each while its conversations are planned stays in memory. */
const most = 2_000_000;

/** What a record has on average, in bytes. It is over 1,000 in real transcripts of that length, and 110 in the least of all. */
const contentBytes = 100;

/** What it has on average where it is compressed: 43 in the least of them, of which an id that is random takes 16. */
const packedBytes = 8;

/** Some records at the beginning of a file, or of what is read of it. */
export interface Reached {
  readonly records: number;
  /** The bytes of their lines. */
  readonly content: number;
  /** The bytes of the file, which may be compressed. */
  readonly size?: number | undefined;
}

/**
 * Why no file of records has so many of so few bytes; undefined for one that may. A small file can be hundreds of millions of
 * records that say nothing, of which each would become an entry. Pure.
 */
export function excessOf({ records, content, size = Number.POSITIVE_INFINITY }: Reached): string | undefined {
  if (records <= free) return undefined;
  if (records > most) return `there are over ${most} records up to here`;
  if (records * contentBytes > content)
    return `the ${records} records up to here have under ${contentBytes} bytes on average`;
  return records * packedBytes > size ? `${size} bytes of the file are over ${records} records` : undefined;
}
