import { connect, createServer, type Socket } from 'node:net';

/** Messages of a client that the server answers before the client goes on: Sync, and a query in one message. */
const waiting: ReadonlySet<number> = new Set([...'SQ'].map((letter) => letter.charCodeAt(0)));

/**
 * A link to a PostgreSQL server that counts the round trips of its connections, and can delay each of them: what a store
 * costs where the server is another machine.
 */
export async function slowLink(url: string, { delayMs = 0 }: { readonly delayMs?: number } = {}) {
  const server = new URL(url);
  const sockets = new Set<Socket>();
  let trips = 0;
  let left = Number.POSITIVE_INFINITY;
  let cuts = false;
  const link = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname);
    const count = tripsIn((found) => {
      trips += found;
      left -= found;
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      // An end of one side is the end of both.
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    client.on('data', (bytes) => {
      if (left <= 0) {
        if (!cuts) return;
        left = Number.POSITIVE_INFINITY;
        client.destroy();
        return;
      }
      count(bytes);
      if (delayMs === 0) upstream.write(bytes);
      else setTimeout(() => upstream.write(bytes), delayMs);
    });
    upstream.on('data', (bytes) => client.write(bytes));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => link.once('listening', resolve));
  const here = new URL(url);
  here.port = String((link.address() as { readonly port: number }).port);
  return {
    /** The address of the server through the link. */
    url: here.href,
    /** How many round trips there were so far. */
    get trips() {
      return trips;
    },
    /** Lets only this many more round trips through, as of a process that is stopped then. */
    stopAfter: (more: number) => {
      left = more;
    },
    /** Cuts a connection once this many more round trips are through. A new one is not. */
    cutAfter: (more: number) => {
      left = more;
      cuts = true;
    },
    /** Cuts all connections that are open now. */
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => link.close(resolve));
    },
  };
}

/** Reads the messages of a client, in pieces as they come, and reports those that are a round trip. */
function tripsIn(report: (trips: number) => void): (bytes: Uint8Array) => void {
  let left = Buffer.alloc(0);
  let hasBegun = false;
  return (bytes) => {
    left = Buffer.concat([left, bytes]);
    for (;;) {
      // The first message of a connection has no letter.
      const head = hasBegun ? 1 : 0;
      if (left.length < head + 4) return;
      const length = head + left.readUInt32BE(head);
      if (left.length < length) return;
      if (hasBegun && waiting.has(left[0] ?? 0)) report(1);
      hasBegun = true;
      left = left.subarray(length);
    }
  };
}
