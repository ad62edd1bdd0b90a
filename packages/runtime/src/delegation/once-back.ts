import { setTimeout as sleep } from 'node:timers/promises';
import { TapeError } from '@tapedeck/tape';

const pauseMs = 200;

/** Whether an act may have failed only since the server of the tapes was away: its connection was lost, or none came about. */
function wasAway(error: unknown): boolean {
  return (
    error instanceof TapeError &&
    ((error.code === 'TAPE_IO' && error.data.reason === 'lost') ||
      (error.code === 'TAPE_CANNOT_OPEN' && error.data.reason === 'unreachable'))
  );
}

/**
 * Does an act of the database once the server of the tapes is back, however often the connection is lost. The act must be
 * one that changes nothing when it is done twice: the first time may have succeeded without an answer.
 * @param isOver whether to wait no longer, and to throw what the act has thrown
 */
export async function onceBack<T>(act: () => Promise<T>, isOver: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!wasAway(error) || isOver()) throw error;
      await sleep(pauseMs);
    }
  }
}
