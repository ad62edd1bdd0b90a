import {
  type ForkPreview,
  isObject,
  type Merged,
  type MergePreview,
  type MergeRequest,
  type PreviewEntry,
  type SqliteTapeStore,
  TapeError,
} from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';

type Json = Readonly<Record<string, unknown>>;

/** Whether a merge is refused for somebody who writes the parent: it can wait in its inbox. A busy child is the caller's to wait for. */
export function parentIsBusy(error: unknown): boolean {
  return error instanceof TapeError && error.code === 'TAPE_BUSY' && error.data.child === undefined;
}

/** The receipt of a merge, done or shown, as `--json` gives it. */
export function mergedJson({
  parent,
  child,
  state,
  seq,
  range,
  repeated,
  complete,
  conflicts,
}: Omit<Merged, 'graphLagging'>): Json {
  return { parent, child, state, seq, range, repeated, complete, conflicts };
}

/** A merge that waits in its parent's inbox, as `--json` gives it. */
export function queuedJson(parent: string, child: string): Json {
  const unknown = { seq: null, range: null, repeated: false, complete: null, conflicts: [] };
  return { parent, child, state: 'queued', ...unknown };
}

/** Tells what a merge or a discard would write, and writes nothing. */
export async function previewMerge(
  store: SqliteTapeStore,
  { child, request }: { readonly child: string; readonly request: MergeRequest },
  context: Context,
): Promise<number> {
  let preview: MergePreview;
  try {
    preview = store.previewMerge(child, request);
  } catch (error) {
    if (!parentIsBusy(error)) throw error;
    const parent = request.into ?? store.find(child)?.parent ?? child;
    await context.answer({
      json: { ...queuedJson(parent, child), entries: [], text: null, dry_run: true },
      quiet: '',
      human: `Would leave ${child} in the inbox of ${parent}, which another process is writing`,
    });
    return exit.done;
  }
  const { entries, parent, state, seq, range, repeated, complete, conflicts } = preview;
  const text = textOf(entries);
  const act = state === 'discarded' ? `discard ${child} at` : `merge ${child}:${range[0]}-${range[1]} into`;
  await context.answer({
    json: {
      ...mergedJson(preview),
      entries: entries.map(entryJson),
      text,
      dry_run: true,
    },
    quiet: `${parent}@${seq}`,
    human: repeated
      ? `${parent}@${seq} has it already: nothing to do`
      : [
          `Would ${act} ${parent}@${seq}`,
          ...conflicts.map((c) => `both wrote ${c.what} (child @${c.child}, parent @${c.parent})`),
          ...(complete ? [] : ['A tool ran that does not declare its files, so there may be more conflicts']),
          ...entries.map((entry) => entryLine(parent, entry)),
          ...(text === null ? [] : ['', text]),
        ].join('\n'),
  });
  return exit.done;
}

/** What a fork would write, as `--json` gives it. */
export function forkPreviewJson(preview: ForkPreview): Json {
  const { session, parent, fromAnchor, base, range, snappedFrom, repeated, entries } = preview;
  return {
    session: session ?? null,
    parent,
    from_anchor: fromAnchor,
    base,
    range,
    ...(snappedFrom !== undefined && { snapped_from: snappedFrom }),
    repeated,
    entries: entries.map(entryJson),
    dry_run: true,
  };
}

/** What a fork would write, for a person. */
export function forkPreviewText({
  session,
  parent,
  range,
  snappedFrom,
  repeated,
  entries,
}: ForkPreview): string {
  if (repeated) return `${session} exists already: nothing to do`;
  const child = session ?? 'a child with a name of its own';
  const what = range === null ? `nothing of ${parent}` : `${parent} ${range[0]}-${range[1]}`;
  const snapped =
    snappedFrom === undefined ? '' : `; cut back from @${snappedFrom}, where tool calls are open`;
  return [
    `Would fork ${child}, which inherits ${what}${snapped}`,
    ...entries.map((entry) => entryLine(session ?? '', entry)),
  ].join('\n');
}

function entryJson({ seq, kind, name }: PreviewEntry): Json {
  return { seq, kind, ...(name !== undefined && { name }) };
}

function entryLine(session: string, { seq, kind, name }: PreviewEntry): string {
  return `  ${session}@${seq} ${kind}${name === undefined ? '' : ` ${name}`}`;
}

/** The text of the message among the entries, if there is one. */
function textOf(entries: readonly PreviewEntry[]): string | null {
  for (const { kind, payload } of entries)
    if (kind === 'message' && isObject(payload) && Array.isArray(payload.content))
      return payload.content.map((part) => (isObject(part) ? String(part.text) : '')).join('');
  return null;
}
