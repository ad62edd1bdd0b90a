import {
  type Entry,
  isBlobRef,
  isObject,
  type Json,
  restoreBlobs,
  type SqliteTapeStore,
} from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { entryJson, entryPage } from '../output/entry.ts';
import { sessionJson } from '../output/session.ts';
import { needSession, readPlace } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

export const show: Verb = defineVerb({
  command: 'show <place>',
  group: 'Look',
  summary: 'Show one entry in full, or what is known of a session',
  detail:
    'A tool output of over 256 KiB is shown by its beginning; --output prints it whole, --bytes a part of it, --raw as the ' +
    'bytes that were stored, control characters included.',
  examples: [
    ['tape show main@42', 'One entry'],
    ['tape show main@task-start', 'An anchor with its state'],
    ['tape show main', 'The session'],
    ['tape show main@42 --output --bytes 0..4095', 'The first 4 KiB of what a tool gave'],
  ],
  options: (y) =>
    y
      .positional('place', { type: 'string', demandOption: true, describe: 'SESSION@POINT, or SESSION' })
      .option('output', { type: 'boolean', describe: "Print the tool's output alone" })
      .option('bytes', {
        type: 'string',
        requiresArg: true,
        implies: 'output',
        describe: 'Only bytes FROM..TO, both included',
      })
      .option('raw', { type: 'boolean', implies: 'output', describe: 'As it was stored, unescaped' }),
  run: async ({ place, output, bytes, raw }, context) =>
    await context.reading(async (store) => {
      const { session, point } = readPlace(store, place);
      const info = needSession(store, session);
      if (point === undefined) {
        if (output === true) throw new UsageError(`cannot print the output of '${place}': it is no entry`);
        const { metadataOf } = await import('@tapedeck/runtime/branch');
        const metadata = await metadataOf(store, info);
        const json = {
          ...sessionJson(info),
          tape: info.tape,
          base: info.base,
          floor: info.floor,
          settled: info.settled,
          hash: info.headHash,
          ...(Object.keys(metadata).length > 0 && { metadata }),
        };
        const text = (value: unknown) => (isObject(value) ? JSON.stringify(value) : String(value));
        const rows = Object.entries(json).map(([field, value]) => `${field.padEnd(11)} ${text(value)}`);
        await context.answer({ json, quiet: info.id, human: rows.join('\n') });
        return 0;
      }
      const seq = store.resolve(info.id, point);
      for (const entry of store.read(info.id, { from: seq, to: seq })) {
        if (output === true) await showOutput(context, { store, entry, bytes, raw: raw === true });
        else await context.answer({ json: entryJson(entry), quiet: entry.hash, human: entryPage(entry) });
      }
      return 0;
    }),
});

async function showOutput(
  { answer, io, options }: Context,
  {
    store,
    entry,
    bytes,
    raw,
  }: {
    readonly store: SqliteTapeStore;
    readonly entry: Entry;
    readonly bytes: string | undefined;
    readonly raw: boolean;
  },
): Promise<void> {
  const { session, seq, kind, payload } = entry;
  const value =
    kind === 'tool-result' && isObject(payload) && isObject(payload.output)
      ? payload.output.value
      : undefined;
  if (value === undefined)
    throw new NotFoundError(`cannot print the output of ${session}@${seq}: it holds none`, { session, seq });
  const inline = isBlobRef(value) ? Buffer.alloc(0) : Buffer.from(inFull(value, store));
  const size = isBlobRef(value) ? value.size : inline.byteLength;
  const { from, to } = bytes === undefined ? { from: 0, to: size } : rangeOf(bytes, size);
  const part = isBlobRef(value)
    ? Buffer.from(store.blob(value.hash, { from, to }))
    : inline.subarray(from, to);
  if (raw && options.json !== true && options.jsonl !== true) {
    await io.out(part);
    return;
  }
  const text = part.toString('utf8');
  await answer({ json: { session, seq, size, from, to, text }, human: text });
}

/** A value as text, with what is kept elsewhere put back: bytes as base64. */
function inFull(value: Json, store: SqliteTapeStore): string {
  const whole = restoreBlobs(value, (hash) => store.blob(hash));
  if (typeof whole === 'string') return whole;
  return JSON.stringify(whole, (_, field: unknown) =>
    field instanceof Uint8Array ? Buffer.from(field).toString('base64') : field,
  );
}

/** `A..B`, both included, as numbers of which the second is not. */
function rangeOf(text: string, size: number): { from: number; to: number } {
  const match = /^(\d+)\.\.(\d+)$/.exec(text);
  const [from, last] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || last < from)
    throw new UsageError(`cannot read --bytes ${text}: it must be FROM..TO, both included, 0..4095 say`);
  return { from: Math.min(from, size), to: Math.min(last + 1, size) };
}
