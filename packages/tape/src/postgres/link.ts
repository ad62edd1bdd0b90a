import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { TapeError } from '../errors.ts';
import type { Address } from './address.ts';
import type { SendNow } from './attempt.ts';
import { typed } from './errors.ts';
import { channelOf } from './listener.ts';
import type { Answer, Stopped } from './pipeline.ts';

/** What the thread of a link begins with. */
export interface ThreadData {
  readonly url: string;
  readonly options: string;
  /** The statement that the connection begins with. */
  readonly begin: string;
  readonly channel: string;
  /** `answered` is 1 when an answer is there; `told` counts what the server tells of commits. */
  readonly state: Int32Array<SharedArrayBuffer>;
}

/** The places of the state that both threads see. */
export const places = { answered: 0, told: 1 } as const;

/** What the thread answers. An error loses its fields on the way between threads. */
export type Reply =
  | { readonly answers: readonly Sent[] }
  | {
      readonly stopped: {
        readonly message: string;
        readonly code?: string;
        readonly index: number;
        readonly answers: readonly Sent[];
      };
    };

/** An answer without what is no data. */
export type Sent = Omit<Answer, 'digest'>;

/** A connection in another thread, for one that waits. */
export interface Link {
  readonly send: SendNow;
  /** A number that changes soon after each commit to the home. */
  told(): number;
  close(): void;
}

/** How often it is said that a statement has no answer yet, in milliseconds. */
const sayMs = 200;

/**
 * Opens a connection in another thread. It connects with the first statement.
 * @param onBlocked see `PostgresHomeOptions`
 */
export function openLink(address: Address, onBlocked: (ms: number) => void = () => {}): Link {
  const { url, options, begin, shown } = address;
  const state = new Int32Array(new SharedArrayBuffer(8));
  const { port1: port, port2 } = new MessageChannel();
  const file = `./link-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`;
  const data: ThreadData = { url, options, begin, channel: channelOf(address), state };
  const thread = new Worker(new URL(file, import.meta.url), {
    workerData: { ...data, port: port2 },
    transferList: [port2],
  });
  thread.unref();
  port.unref();
  let isClosed = false;
  return {
    send: (statements) => {
      if (isClosed) throw new TapeError('TAPE_CLOSED', 'cannot use the store: it is closed');
      Atomics.store(state, places.answered, 0);
      port.postMessage(statements);
      // The signal of an earlier answer may come only now, when that answer has been seen without it.
      let waited = 0;
      while (Atomics.load(state, places.answered) === 0) {
        if (Atomics.wait(state, places.answered, 0, sayMs) !== 'timed-out') continue;
        waited += sayMs;
        onBlocked(waited);
      }
      if (waited > 0) onBlocked(0);
      const reply = receiveMessageOnPort(port)?.message as Reply;
      if ('answers' in reply) return reply.answers.map(asBuffers);
      const { message, code, index, answers } = reply.stopped;
      // An act that goes on after damage must see that this error is not damage.
      const error = typed(shown, Object.assign(new Error(message), { ...(code !== undefined && { code }) }));
      const stopped: Stopped = { error: error as Error, index, answers: answers.map(asBuffers) };
      throw stopped;
    },
    told: () => Atomics.load(state, places.told),
    close: () => {
      isClosed = true;
      port.postMessage(undefined);
    },
  };
}

/** Bytes come from another thread as plain arrays of them. */
function asBuffers(answer: Sent): Answer {
  return {
    ...answer,
    digest: () => '',
    rows: answer.rows.map((row) => withBuffers(row as Record<string, unknown>)),
  };
}

function withBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row))
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.length);
  return row;
}
