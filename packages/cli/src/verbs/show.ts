import type { Entry, HomeStore, Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isBlobRef, restoreBlobs } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { NotFoundError, UsageError } from '../errors/kinds.ts';
import { safe } from '../escape.ts';
import { entryJson } from '../output/entry.ts';
import { sessionJson } from '../output/session.ts';
import { importedFrom, importedRows } from '../session/imported-from.ts';
import { needSession, readPlace } from '../session/place.ts';
import { savedOutput } from '../session/saved-output.ts';
import { hangingLines } from '../terminal/wrap.ts';
import { defineVerb, type Verb } from './verb.ts';

export const show: Verb = defineVerb({
  command: 'show <place>',
  group: 'Look',
  paged: true,
  summary: 'Show an entry in full, or the properties of a session',
  detail:
    'Shows the beginning of a tool output larger than 256 KiB, or that an imported program kept in a file; --output prints all of it, --bytes a part, and --raw the stored ' +
    'bytes, control characters included.',
  examples: [
    ['tape show main@42', 'Show an entry'],
    ['tape show main@task-start', 'Show an anchor with its state'],
    ['tape show main', 'Show the session'],
    ['tape show main@42 --output --bytes 0..4095', 'Print the first 4 KiB of a tool output'],
  ],
  arguments: { place: 'SESSION@POINT, or SESSION' },
  options: {
    full: {
      type: 'boolean',
      describe: 'Show whole arguments of calls, of which a terminal shows the beginning',
    },
    output: { type: 'boolean', describe: 'Print the tool output alone' },
    bytes: { type: 'string', needs: 'output', describe: 'Print bytes FROM..TO, both included' },
    raw: { type: 'boolean', needs: 'output', describe: 'Print the stored bytes, unescaped' },
  },
  run: async ({ place, output, bytes, raw, full }, context) =>
    await context.reading(async (store) => {
      const { session, point } = readPlace(store, place);
      const info = needSession(store, session);
      if (point === undefined) {
        if (output === true)
          throw new UsageError(`cannot print the output of '${place}': it is a session, not an entry`);
        const { allowedTools, ancestryOf, factsOf, serverNote, usedTools } = await import(
          '@tapedeck/runtime/internal'
        );
        const mcp = serversOf(store, info.id, serverNote);
        const line = await ancestryOf(store, await factsOf(store, info));
        const { metadata = {}, ...settings } = line[0].origin.settings;
        const tools = allowedTools(line);
        const uses = usedTools(line);
        const imported = importedFrom(store, info.id);
        const own = {
          ...sessionJson(info),
          tape: info.tape,
          base: info.base,
          floor: info.floor,
          settled: info.settled,
          hash: info.headHash,
          ...(tools !== undefined && { tools: [...tools] }),
          ...(uses !== undefined && uses.size !== tools?.size && { uses: [...uses] }),
          ...(Object.keys(settings).length > 0 && { settings }),
          ...(Object.keys(metadata).length > 0 && { metadata }),
          ...(Object.keys(mcp).length > 0 && { mcp }),
        };
        const json = { ...own, ...(imported !== undefined && { imported }) };
        const text = (value: unknown) =>
          Array.isArray(value)
            ? value.join(', ') || 'none'
            : isObject(value)
              ? JSON.stringify(value)
              : String(value);
        const columns = context.io.isTerminal ? context.io.columns : Number.POSITIVE_INFINITY;
        // A session without a list may call all tools that the configuration has.
        const shown = { ...own, ...(tools === undefined && { tools: 'all' }), ...importedRows(imported) };
        const rows = Object.entries(shown).flatMap(([field, value]) =>
          hangingLines(safe(`${field.padEnd(15)} ${text(value)}`), columns, 16),
        );
        await context.answer({ json, quiet: info.id, human: rows.join('\n') });
        return 0;
      }
      const seq = store.entries.resolve(info.id, point);
      for (const entry of store.entries.read(info.id, { from: seq, to: seq })) {
        if (output === true) await showOutput(context, { store, entry, bytes, raw: raw === true });
        else await showEntry(context, entry, full === true);
      }
      return 0;
    }),
});

/** The tools of each MCP server that the session was last offered. */
function serversOf(
  store: HomeStore,
  session: string,
  prefix: string,
): Readonly<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {};
  for (const { name = '', payload } of store.entries.read(session, { namePrefix: prefix }))
    if (isObject(payload) && isObject(payload.tools))
      found[name.slice(prefix.length)] = Object.keys(payload.tools);
  return found;
}

async function showEntry({ answer, ...context }: Context, entry: Entry, full: boolean): Promise<void> {
  const { entryPage } = await import('../transcript/page.ts');
  const human = entryPage(entry, context, { full });
  await answer({ json: entryJson(entry), quiet: entry.hash, human, isStyled: true });
}

async function showOutput(
  { answer, io, options, status }: Context,
  {
    store,
    entry,
    bytes,
    raw,
  }: {
    readonly store: HomeStore;
    readonly entry: Entry;
    readonly bytes: string | undefined;
    readonly raw: boolean;
  },
): Promise<void> {
  const { session, seq, kind, payload, meta } = entry;
  const saved = savedOutput(store, entry);
  if (saved === undefined && typeof meta.savedAs === 'string')
    status(`Its beginning: the file ${meta.savedAs} with the whole output was not found by an import`);
  const value =
    saved ??
    (kind === 'tool-result' && isObject(payload) && isObject(payload.output)
      ? payload.output.value
      : undefined);
  if (value === undefined)
    throw new NotFoundError(`cannot print the output of ${session}@${seq}: it has no tool output`, {
      session,
      seq,
    });
  const inline = isBlobRef(value) ? Buffer.alloc(0) : Buffer.from(inFull(value, store));
  const size = isBlobRef(value) ? value.size : inline.byteLength;
  const { from, to } = bytes === undefined ? { from: 0, to: size } : rangeOf(bytes, size);
  const part = isBlobRef(value)
    ? Buffer.from(store.entries.blob(value.hash, { from, to }))
    : inline.subarray(from, to);
  if (raw && options.json !== true && options.jsonl !== true) {
    await io.out(part);
    return;
  }
  const text = part.toString('utf8');
  await answer({ json: { session, seq, size, from, to, text }, human: text });
}

/** A value as text, with the contents of its blobs: bytes as base64. */
function inFull(value: Json, store: HomeStore): string {
  const whole = restoreBlobs(value, (hash) => store.entries.blob(hash));
  if (typeof whole === 'string') return whole;
  return JSON.stringify(whole, (_, field: unknown) =>
    field instanceof Uint8Array ? Buffer.from(field).toString('base64') : field,
  );
}

/** Reads `A..B`, both included, as a half-open range. */
function rangeOf(text: string, size: number): { from: number; to: number } {
  const match = /^(\d+)\.\.(\d+)$/.exec(text);
  const [from, last] = [Number(match?.[1]), Number(match?.[2])];
  if (match === null || last < from)
    throw new UsageError(`cannot read --bytes ${text}: it must be FROM..TO, both included, such as 0..4095`);
  return { from: Math.min(from, size), to: Math.min(last + 1, size) };
}
