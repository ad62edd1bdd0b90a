import { type HomeStore, type Merged, type MergeRequest, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ForkPreview, MergePreview, PreviewEntry } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Whether a merge failed because another process writes the parent: it can be queued. A busy child cannot.
 */
export function parentIsBusy(error: unknown): boolean {
  return error instanceof TapeError && error.code === 'TAPE_BUSY' && error.data.child === undefined;
}

/** The receipt of a merge, or of its preview, as `--json` prints it. */
export function mergedJson({
  parent,
  child,
  state,
  seq,
  range,
  repeated,
  complete,
  conflicts,
}: Omit<Merged, 'graphLagging' | 'graphDiverged'>): Json {
  return { parent, child, state, seq, range, repeated, complete, conflicts };
}

/** A merge that is queued in the inbox of its parent, as `--json` prints it. */
export function queuedJson(parent: string, child: string): Json {
  const unknown = { seq: null, range: null, repeated: false, complete: null, conflicts: [] };
  return { parent, child, state: 'queued', ...unknown };
}

/** Prints the entries that a merge or a discard would write, and writes nothing. */
export async function previewMerge(
  store: HomeStore,
  { child, request }: { readonly child: string; readonly request: MergeRequest },
  context: Context,
): Promise<number> {
  const preview: MergePreview = store.lineage.previewMerge(child, request);
  if (preview.refusal !== undefined) {
    if (!parentIsBusy(preview.refusal)) throw preview.refusal;
    const parent = request.into ?? store.sessions.find(child)?.parent ?? child;
    await context.answer({
      json: { ...queuedJson(parent, child), entries: [], text: null, dry_run: true },
      quiet: '',
      human: `Would post the merge of ${child} to the inbox of ${parent}, which another process is writing`,
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
      ? `${child} is already ${state} at ${parent}@${seq}: nothing to do`
      : [
          `Would ${act} ${parent}@${seq}`,
          ...conflicts.map((c) => `both wrote ${c.what} (child @${c.child}, parent @${c.parent})`),
          ...(complete ? [] : ['A tool ran that does not declare its files: there may be more conflicts']),
          ...entries.map((entry) => entryLine(parent, entry)),
          ...(text === null ? [] : ['', text]),
        ].join('\n'),
  });
  return exit.done;
}

/** The preview of a fork as `--json` prints it. */
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

/** The preview of a fork as text. */
export function forkPreviewText({
  session,
  parent,
  range,
  snappedFrom,
  repeated,
  entries,
}: ForkPreview): string {
  if (repeated) return `${session} exists already: nothing to do`;
  const child = session ?? 'a child with a new name';
  const what = range === null ? `nothing of ${parent}` : `${parent} ${range[0]}-${range[1]}`;
  const snapped =
    snappedFrom === undefined ? '' : `; snapped back from @${snappedFrom}, where tool calls are open`;
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

/** The text of the message among the entries; null without a message. */
function textOf(entries: readonly PreviewEntry[]): string | null {
  for (const { kind, payload } of entries)
    if (kind === 'message' && isObject(payload) && Array.isArray(payload.content))
      return payload.content.map((part) => (isObject(part) ? String(part.text) : '')).join('');
  return null;
}
