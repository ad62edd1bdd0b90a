import { setTimeout as sleep } from 'node:timers/promises';
import { isAway } from '@tapedeck/tape/internal';

const pauseMs = 200;

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
      if (!isAway(error) || isOver()) throw error;
      await sleep(pauseMs);
    }
  }
}
