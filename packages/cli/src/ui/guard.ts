import { Refused } from './refuse.ts';

/** A request, as far as it is looked at before anything else. */
export interface Asking {
  readonly method: string;
  readonly url: string;
  /** Names in lower case, with all values of each. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
}

/**
 * Refuses what no page of ours sends: a name of another host, which leads here by rebinding; another origin; another method,
 * or a body. Texts are compared as they are, as browsers write them. Pure.
 * @throws Refused
 */
export function guard({ method, url, headers }: Asking, port: number): void {
  const [host, ...hosts] = headers.host ?? [];
  if (host === undefined || hosts.length > 0 || !hostsOf(port).includes(host))
    throw refused(403, 'UI_BAD_HOST', 'the request is for another host');
  if (method !== 'GET') throw refused(405, 'UI_BAD_METHOD', 'the server takes GET alone');
  if (headers.expect !== undefined) throw refused(417, 'UI_BAD_REQUEST', 'the server meets no expectation');
  if (
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] ?? []).some((length) => length !== '0')
  )
    throw refused(400, 'UI_BAD_REQUEST', 'the request has a body');
  if (headers.upgrade !== undefined)
    throw refused(400, 'UI_BAD_REQUEST', 'the server speaks no other protocol');
  if (!(headers.origin ?? []).every((origin) => origin === `http://${host}`))
    throw refused(403, 'UI_BAD_ORIGIN', 'the request comes from another page');
  if (!(headers['sec-fetch-site'] ?? []).every((site) => site === 'same-origin' || site === 'none'))
    throw refused(403, 'UI_BAD_ORIGIN', 'the request comes from another page');
  if (!url.startsWith('/')) throw refused(400, 'UI_BAD_REQUEST', 'the request names no path');
}

function hostsOf(port: number): readonly string[] {
  // Browsers leave out the port that is usual.
  return ['127.0.0.1', 'localhost'].flatMap((name) => (port === 80 ? [name] : [`${name}:${port}`]));
}

function refused(status: number, code: string, message: string): Refused {
  return new Refused(status, { code, message: `cannot answer: ${message}` });
}
