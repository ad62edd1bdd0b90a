/**
 * The thread of a `link.ts`: it has the connection, sends the statements that it receives, and signals when they are answered.
 */
import { type MessagePort, workerData } from 'node:worker_threads';
import type { Client } from 'pg';
import { isLost } from './errors.ts';
import { places, type Reply, type Sent, type ThreadData } from './link.ts';
import { type Answer, type Statement, type Stopped, sendAll } from './pipeline.ts';

const { url, options, begin, channel, state, port } = workerData as ThreadData & {
  readonly port: MessagePort;
};
let client: Promise<Client> | undefined;

async function connect(): Promise<Client> {
  const { clientOf } = await import('./connect.ts');
  const made = clientOf({ url, options });
  made.on('notification', () => Atomics.add(state, places.told, 1));
  await made.connect();
  await made.query(`${begin}; LISTEN ${channel}`);
  return made;
}

async function replyTo(statements: readonly Statement[]): Promise<Reply> {
  try {
    client ??= connect();
    return { answers: (await sendAll(await client, statements.map(withBuffers))).map(toSend) };
  } catch (failed) {
    const { error, index = 0, answers = [] } = failed as Partial<Stopped>;
    const { message, code } = (error ?? failed) as Error & { readonly code?: string };
    // A connection that could not be made, or is lost, is made anew: it has ended its transaction.
    if (error === undefined || isLost(error)) client = undefined;
    return { stopped: { message, ...(code !== undefined && { code }), index, answers: answers.map(toSend) } };
  }
}

function toSend({ rows, count, columns }: Answer): Sent {
  return { rows, count, columns };
}

/** Bytes come from another thread as plain arrays of them. */
function withBuffers(statement: Statement): Statement {
  const values = statement.values.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.length) : value,
  );
  return { ...statement, values };
}

async function close(): Promise<void> {
  await (await client?.catch(() => undefined))?.end();
  port.close();
}

port.on('message', (statements: readonly Statement[] | undefined) => {
  if (statements === undefined) void close();
  else
    void replyTo(statements).then((reply) => {
      port.postMessage(reply);
      Atomics.store(state, places.answered, 1);
      Atomics.notify(state, places.answered);
    });
});
