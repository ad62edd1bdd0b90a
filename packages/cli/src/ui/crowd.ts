import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Connections at a time whose requests are answered. */
export const connectionsMax = 1_000;
/** Those beyond, which are told so. Even more are closed. */
const toldMax = 100;

/** The connections of a server. */
export interface Crowd {
  /** Whether there were as many as are answered when this one came. */
  isBeyond(socket: Socket): boolean;
}

/** Counts the connections of a server from now on. */
export function crowdOf(server: Server): Crowd {
  const within = new Set<Socket>();
  server.maxConnections = connectionsMax + toldMax;
  server.on('connection', (socket: Socket) => {
    if (within.size === connectionsMax) return;
    within.add(socket);
    socket.once('close', () => within.delete(socket));
  });
  return { isBeyond: (socket) => !within.has(socket) };
}
