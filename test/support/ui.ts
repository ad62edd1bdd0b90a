import { connect, type Socket } from 'node:net';
import type { PageEvent } from '@tapedeck/cli/internal';
import { type CliOptions, json, type Running, startTape } from './cli.ts';

/** A `tape ui` in a process of its own, with the cookie of a browser that its address let in. */
export interface Ui extends AsyncDisposable {
  readonly running: Running;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** The header of that cookie; undefined until `enter`. */
  readonly cookie: string;
  /** What a page is answered. */
  ask(path: string, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

/** What the server sent on one connection. */
export interface Raw {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
  /** All of it. */
  readonly text: string;
}

/** Starts the server of a home. */
export async function startUi(
  args: readonly string[] = [],
  { enter = true, ...options }: CliOptions & { readonly enter?: boolean } = {},
): Promise<Ui> {
  const running = startTape(['ui', '--json', ...args], options);
  let stdout = '';
  running.child.stdout?.on('data', (text: string) => {
    stdout += text;
  });
  await running.until('"pid"');
  const { url, port, pid } = json<{ url: string; port: number; pid: number }>({
    ...{ stdout, stderr: '', code: 0 },
  });
  const entered = enter ? await fetch(url, { redirect: 'manual' }) : undefined;
  const cookie = entered?.headers.get('set-cookie')?.split(';')[0] ?? '';
  return {
    ...{ running, url, port, pid, cookie },
    ask: async (path, headers = {}) =>
      await fetch(`http://127.0.0.1:${port}${path}`, {
        headers: { Cookie: cookie, ...headers },
        redirect: 'manual',
      }),
    [Symbol.asyncDispose]: async () => {
      running.child.kill('SIGKILL');
      await running.done;
    },
  };
}

/** Sends bytes as they are, and returns all that comes until the server ends the connection. */
export async function sendRaw(port: number, bytes: string): Promise<Raw> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  // The server ends the connection: one that is ended here gets no more answers.
  socket.write(bytes);
  let text = '';
  for await (const part of socket.setEncoding('latin1')) text += part;
  return rawOf(text);
}

function rawOf(text: string): Raw {
  const at = text.indexOf('\r\n\r\n');
  return {
    text,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    headers: text.slice(0, at),
    body: text.slice(at + 4),
  };
}

/** A stream of events that is read as a browser reads it. */
export interface Events extends Disposable {
  readonly events: PageEvent[];
  /** The id of the last event that is whole. */
  readonly last: () => string | undefined;
  readonly socket: Socket;
  /** All that came. */
  readonly text: () => string;
}

/** Opens a stream of events, from where an earlier one was cut off or a place of the home. */
export function followUi(
  { port, cookie }: Pick<Ui, 'port' | 'cookie'>,
  { after, last }: { readonly after?: string; readonly last?: string | undefined } = {},
): Events {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  socket.write(
    [
      `GET /api/events${after === undefined ? '' : `?after=${encodeURIComponent(after)}`} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      `Cookie: ${cookie}`,
      ...(last === undefined ? [] : [`Last-Event-ID: ${last}`]),
      '\r\n',
    ].join('\r\n'),
  );
  const events: PageEvent[] = [];
  let text = '';
  let id: string | undefined;
  let read = 0;
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    for (let end = text.indexOf('\n\n', read); end !== -1; end = text.indexOf('\n\n', read)) {
      const lines = text.slice(read, end).split('\n');
      read = end + 2;
      if (lines.includes('event: beat')) continue;
      for (const line of lines) {
        if (line.startsWith('id: ')) id = line.slice(4);
        if (line.startsWith('data: ')) events.push(...(JSON.parse(line.slice(6)) as PageEvent[]));
      }
    }
  });
  return {
    ...{ events, socket, last: () => id, text: () => text },
    [Symbol.dispose]: () => socket.destroy(),
  };
}
