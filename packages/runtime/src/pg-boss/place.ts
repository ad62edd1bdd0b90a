import { parseAddress } from '@tapedeck/tape/internal';

/** Where the queues of a home are. */
export interface Place {
  /** What `pg` connects to. */
  readonly address: string;
  /** The same as it may be shown: without user and password. */
  readonly shown: string;
  /** Their schema, beside that of the home. */
  readonly schema: string;
}

/**
 * The queues of the home at an address, which is read as the store reads it.
 * @throws TAPE_CANNOT_OPEN; the message has no user and no password
 */
export function placeOf(text: string): Place {
  const { url, options, schema, shown } = parseAddress(text);
  const address = new URL(url);
  if (options !== '') address.searchParams.set('options', options);
  return { address: address.href, shown, schema: `${schema}_boss` };
}
