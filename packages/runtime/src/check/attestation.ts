import { createHash, type KeyObject, sign, verify } from 'node:crypto';
import type { Seq, TapeStore } from '@tapedeck/tape';
import { encodeLine, firstLinePrev, hashLine, type LineageLine } from '@tapedeck/tape/store';
import { sessionsOf } from '../audit/index.ts';
import { assertFields, type Fields } from '../fields.ts';
import { inProcess, type StoreSource, storeOf } from '../store-of.ts';
import type { Found } from './finding.ts';

/** The heads of all sessions and of the lineage at one time, as lines of text. */
export interface Attestation {
  /** The lines, each with its LF; one for each session, so an attestation of many sessions streams. */
  readonly lines: AsyncIterable<string>;
  /** The numbers of sessions and of lineage lines, once the lines were read. */
  readonly count: () => { readonly sessions: number; readonly g: number };
}

/** An attestation to compare with. */
export interface AttestationSource {
  /** Its lines without LF, in order. */
  readonly lines: Iterable<string> | AsyncIterable<string>;
  /** The public key that its signature must be of. Without it, a signature is not verified. */
  readonly publicKey?: KeyObject;
}

/** Options of `attest`. */
export interface AttestOptions {
  /** A private Ed25519 key, to sign with. */
  readonly key?: KeyObject;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

const attestFields: Fields<AttestOptions> = { key: true, now: true };

const header = 'tapedeck-attestation 1';

/**
 * Writes down the head of every session, of all realms, and of the lineage, and signs it with an Ed25519 key if one
 * is given. A later `check` with it proves that the tapes have only grown since. It does not verify the home: run
 * `check` for that.
 * @param source a store, or a deck
 * @throws SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { attest } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const lines = await Array.fromAsync(attest(store).lines);
 * console.log(lines[0]?.trimEnd()); // tapedeck-attestation 1
 * ```
 */
export function attest(source: StoreSource, options: AttestOptions = {}): Attestation {
  assertFields(options, attestFields, 'attest');
  const { key, now = Date.now } = options;
  const store = storeOf(source, 'attest');
  let sessions = 0;
  let g = 0;
  async function* body(): AsyncGenerator<string> {
    yield `${header}\n`;
    yield `at ${new Date(now()).toISOString()}\n`;
    // Before the sessions: a line that is written meanwhile is about a later head.
    const last = await lastLine(store);
    g = last?.g ?? 0;
    yield `graph ${g} ${last?.hash ?? firstLinePrev}\n`;
    for await (const { id, head, headHash, session: name } of sessionsOf(store, undefined)) {
      sessions += 1;
      yield `session ${id} ${head} ${headHash} ${name}\n`;
    }
    yield `sessions ${sessions}\n`;
  }
  async function* lines(): AsyncGenerator<string> {
    const sum = createHash('sha256');
    for await (const line of body()) {
      sum.update(line);
      yield line;
    }
    const digest = `sha256 ${sum.digest('hex')}\n`;
    yield digest;
    if (key !== undefined) yield `ed25519 ${sign(null, Buffer.from(digest), key).toString('base64')}\n`;
  }
  return { lines: lines(), count: () => ({ sessions, g }) };
}

/** Number and hash of the newest line of the lineage; undefined when it has none. */
async function lastLine(
  store: TapeStore,
): Promise<{ readonly g: number; readonly hash: string } | undefined> {
  const own = inProcess(store);
  if (own !== undefined) return own.lineageHash();
  let last: LineageLine | undefined;
  for await (const line of store.lineage.read()) last = line;
  return last === undefined ? undefined : { g: last.g, hash: hashLine(encodeLine(last)) };
}

async function lineAt(store: TapeStore, g: number): Promise<LineageLine | undefined> {
  for await (const line of store.lineage.read({ from: g })) return line.g === g ? line : undefined;
  return undefined;
}

/** What an attestation says of one session. */
interface AttestedHead {
  readonly id: string;
  readonly seq: Seq;
  readonly hash: string;
  readonly name: string;
}

interface Parsed {
  readonly graph: { readonly g: number; readonly hash: string };
  readonly heads: readonly AttestedHead[];
}

/** Finds where tapes have not only grown since an attestation; with `session`, a ULID, of that session alone. */
export async function* compareAttestation(
  store: TapeStore,
  source: AttestationSource,
  session: string | undefined,
): AsyncGenerator<Found> {
  const parsed = await parse(source);
  if (typeof parsed === 'string') {
    yield {
      code: 'attestation-invalid',
      session: null,
      seq: null,
      message: `the attestation proves nothing: ${parsed}; compare the file with the copy that you keep elsewhere`,
    };
    return;
  }
  if (parsed.signed && source.publicKey === undefined)
    yield {
      code: 'attestation-unverified',
      session: null,
      seq: null,
      message: 'the signature was not verified: no public key was given',
    };
  for (const head of parsed.heads)
    if (session === undefined || head.id === session) yield* compareHead(store, head);
  if (session === undefined) yield* compareGraph(store, parsed.graph);
}

async function* compareHead(store: TapeStore, { id, seq, hash, name }: AttestedHead): AsyncGenerator<Found> {
  const info = await store.sessions.find(id);
  if (info?.id !== id) {
    yield finding(
      'attested-session-missing',
      name,
      null,
      `session '${name}' (${id}) was attested, and is missing`,
    );
    return;
  }
  if (info.head < seq) {
    const message = `'${info.session}' was attested up to @${seq}, and ends at @${info.head}`;
    yield finding('attested-tape-shorter', info.session, info.head + 1, message);
    return;
  }
  for await (const entry of store.entries.read(id, { from: seq, to: seq })) {
    if (entry.hash === hash) return;
  }
  const message = `'${info.session}' had another history up to @${seq} when it was attested`;
  yield finding('attested-entry-differs', info.session, seq, message);
}

async function* compareGraph(store: TapeStore, { g, hash }: Parsed['graph']): AsyncGenerator<Found> {
  if (g === 0) return;
  const line = await lineAt(store, g);
  if (line !== undefined && hashLine(encodeLine(line)) === hash) return;
  const what = line === undefined ? 'is missing' : 'was another one';
  yield finding('attested-graph-differs', null, null, `line ${g} of the lineage was attested, and ${what}`);
}

function finding(code: Found['code'], session: string | null, seq: Seq | null, message: string): Found {
  return { code, session, seq, message, next: { act: 'restore' } };
}

/** Reads an attestation; a text says why it cannot be used. */
async function parse({
  lines,
  publicKey,
}: AttestationSource): Promise<(Parsed & { signed: boolean }) | string> {
  const sum = createHash('sha256');
  const heads: AttestedHead[] = [];
  let graph: Parsed['graph'] | undefined;
  let counted: number | undefined;
  let digest: string | undefined;
  let signature: string | undefined;
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (number === 1 && line !== header) return 'it does not begin like an attestation of this version';
    const [word = '', ...rest] = line.split(' ');
    if (digest !== undefined) {
      if (word !== 'ed25519' || signature !== undefined) return `line ${number} follows its end`;
      signature = rest[0];
    } else if (word === 'sha256') {
      digest = line;
      if (rest[0] !== sum.digest('hex')) return 'it was changed after it was written';
    } else {
      sum.update(`${line}\n`);
      if (word === 'graph') graph = { g: Number(rest[0]), hash: rest[1] ?? '' };
      else if (word === 'session') {
        const [id = '', seq = '', hash = '', ...name] = rest;
        heads.push({ id, seq: Number(seq), hash, name: name.join(' ') });
      } else if (word === 'sessions') counted = Number(rest[0]);
    }
  }
  if (digest === undefined || graph === undefined || counted !== heads.length) return 'it is not complete';
  if (publicKey !== undefined) {
    if (signature === undefined) return 'it is not signed';
    if (!verify(null, Buffer.from(`${digest}\n`), publicKey, Buffer.from(signature, 'base64')))
      return 'its signature is not of that key';
  }
  return { graph, heads, signed: signature !== undefined };
}
