import { TapeError } from '@tapedeck/tape';
import { serverError } from '@tapedeck/tape/internal';
import { messageOf } from '../errors.ts';
import type { Place } from './place.ts';

/**
 * Asks the queues of a home.
 * @throws TAPE_CANNOT_OPEN when the server lets no one in, as the store does; TAPE_IO when it does not do what is asked
 */
export async function asking<T>(
  { shown, schema }: Pick<Place, 'shown' | 'schema'>,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    // What the schema of the queues lacks is said of that.
    const error = serverError(shown, cause);
    if (error instanceof TapeError && (error === cause || isOfConnection(error))) throw error;
    throw new TapeError('TAPE_IO', `cannot use the queue in schema ${schema}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

function isOfConnection({ code, data }: TapeError): boolean {
  return code === 'TAPE_CANNOT_OPEN' && data.reason !== 'privilege';
}
