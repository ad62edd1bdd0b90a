import type { Duplex } from 'node:stream';
import type { Refusal } from '../page/data.ts';
import { headers } from './headers.ts';

/** Why a request is not answered, with the status of HTTP. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;

  constructor(status: number, { code, message, hint }: Refusal) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** Answers what is no longer HTTP, and ends the connection. */
export function refuseSocket(socket: Duplex, status: 400 | 405): void {
  socket.on('error', () => socket.destroy());
  const lines = [
    `HTTP/1.1 ${status} ${status === 400 ? 'Bad Request' : 'Method Not Allowed'}`,
    ...(status === 405 ? ['Allow: GET'] : []),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'Content-Length: 0',
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n`, () => socket.destroy());
}
