import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of a connection at a time. Browsers wait for an answer before they send the next one. */
const waitingMax = 100;

/**
 * Answers the requests of a connection one after the other: of those that a client sends without reading an answer, one is
 * answered and kept. A connection with too many is ended.
 */
export function inTurn(answer: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, (() => void)[]>();
  return (request, response) => {
    const { socket } = request;
    const queue = waiting.get(socket) ?? [];
    waiting.set(socket, queue);
    if (queue.length === waitingMax) {
      socket.destroy();
      return;
    }
    queue.push(() => answer(request, response));
    response.once('close', () => {
      queue.shift();
      if (!socket.destroyed) queue[0]?.();
    });
    if (queue.length === 1) queue[0]?.();
  };
}
