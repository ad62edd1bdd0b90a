/**
 * The thread of a `link.ts`: it has the connection, sends the statements that it receives, and signals when they are answered.
 * It tells the other thread of commits, so it makes a connection that was lost while it was idle anew by itself.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type MessagePort, workerData } from 'node:worker_threads';
import type { Client } from 'pg';
import { againMs, awayMs } from '../db/away.ts';
import { isLost } from './errors.ts';
import { places, type Reply, type Sent, type ThreadData } from './link.ts';
import { type Answer, type Statement, type Stopped, sendAll } from './pipeline.ts';
import { cannotListen, tellReplayed } from './replayed.ts';

const { url, options, begin, channel, state, port } = workerData as ThreadData & {
  readonly port: MessagePort;
};
let client: Promise<Client> | undefined;
/** Whether the connection was lost, and is being made anew. */
let isTrying = false;
let isClosed = false;

const tell = (): void => void Atomics.add(state, places.told, 1);

async function listenOn(made: Client): Promise<void> {
  try {
    await made.query(`${begin}; LISTEN ${channel}`);
  } catch (error) {
    if (!cannotListen(error)) throw error;
    await made.query(begin);
    const { clientOf } = await import('./connect.ts');
    void tellReplayed(made, clientOf({ url, options }), tell);
  }
}

async function connect(): Promise<Client> {
  const { clientOf } = await import('./connect.ts');
  const made = clientOf({ url, options });
  made.on('notification', tell);
  try {
    await made.connect();
    await listenOn(made);
  } catch (error) {
    void made.end().catch(() => {});
    throw error;
  }
  made.once('end', () => void afterEnd(made));
  // What was committed before it listened.
  tell();
  return made;
}

/** The next statements of a transaction have to fail: on another connection they would be outside of it. */
async function afterEnd(ended: Client): Promise<void> {
  const now = client;
  if (ended.getTransactionStatus() === 'I' && now !== undefined && (await now.catch(() => {})) === ended)
    lose(now);
}

/** Forgets a connection that is lost, and makes it anew: who waits for changes sends nothing. */
function lose(lost: Promise<Client> | undefined): void {
  if (client !== lost || isClosed) return;
  client = undefined;
  if (!isTrying) void listenAgain();
}

async function listenAgain(): Promise<void> {
  const from = performance.now();
  isTrying = true;
  for (;;) {
    await sleep(againMs);
    if (isClosed) return;
    client ??= connect();
    const made = client;
    try {
      await made;
      break;
    } catch {
      if (client === made) client = undefined;
      if (performance.now() - from > awayMs) tell();
    }
  }
  isTrying = false;
}

async function replyTo(statements: readonly Statement[]): Promise<Reply> {
  client ??= connect();
  const connected = client;
  let isConnected = false;
  try {
    const made = await connected;
    isConnected = true;
    return { answers: (await sendAll(made, statements.map(withBuffers))).map(toSend) };
  } catch (failed) {
    const { error, index = 0, answers = [] } = failed as Partial<Stopped>;
    const { message, code } = (error ?? failed) as Error & { readonly code?: string };
    // A connection that is lost has ended its transaction.
    if (!isConnected && client === connected) client = undefined;
    else if (error === undefined || isLost(error)) lose(connected);
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
  isClosed = true;
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
