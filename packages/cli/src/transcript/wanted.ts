import type { Entry, SessionInfo } from '@tapedeck/tape';
import { clientCalls, isObject, isWhere } from '@tapedeck/tape/internal';
import type { Condition } from '@tapedeck/tape/store';
import { entryText } from '../output/entry.ts';
import { isNote } from '../output/local-command.ts';
import { callsOf } from './parts.ts';

/** Which entries a reader wants. */
export interface Wanted {
  readonly kind?: string | undefined;
  readonly role?: string | undefined;
  /** Calls of this tool and their results. */
  readonly tool?: string | undefined;
  /** Entries with this text, in either case. */
  readonly text?: string | undefined;
  /** What this session sent: its messages, and its merged results. */
  readonly by?: Pick<SessionInfo, 'id' | 'session'> | undefined;
  /** What the entry records of where it was said, and by what. */
  readonly where?: readonly Condition[] | undefined;
  /** The first and the last time, in milliseconds since 1970. */
  readonly after?: number | undefined;
  readonly before?: number | undefined;
}

/** When an entry happened: at its source, where it was imported. */
export function timeOfEntry({ at, sourceAt }: Entry): number {
  return sourceAt ?? at;
}

/** Whether an imported entry says nothing of when it happened: it has the time of the import. */
export function isUndated({ meta, sourceAt }: Entry): boolean {
  return meta.source === 'import' && sourceAt === undefined;
}

/** Whether a time is one that a reader wants. */
export function isWithin(time: number, { after, before }: Pick<Wanted, 'after' | 'before'>): boolean {
  return (after === undefined || time >= after) && (before === undefined || time <= before);
}

/** Whether a reader wants entries for what they are, and not for where or when they stand. */
export function isByContent({ kind, role, tool, text, by, where }: Wanted): boolean {
  return [kind, role, tool, text, by, where].some((filter) => filter !== undefined);
}

/** The side of a conversation that an entry is of; a merged result is of none. */
export function roleOf({ kind, payload, meta }: Entry): string | undefined {
  if (kind === 'tool-result') return 'tool';
  if (kind !== 'message' || !isObject(payload) || meta.source === 'merge') return undefined;
  return String(payload.role);
}

/** Whether an entry is one that a reader wants. */
export function isWanted(entry: Entry, { kind, role, tool, text, by, where, ...times }: Wanted): boolean {
  return (
    (kind === undefined || isOfKind(entry, kind)) &&
    (role === undefined || roleOf(entry) === role) &&
    (tool === undefined || toolsOf(entry).includes(tool)) &&
    (by === undefined || isFrom(entry, by)) &&
    (where === undefined || isWhere(entry, where)) &&
    isWithin(timeOfEntry(entry), times) &&
    (text === undefined || hasText(entry, text.toLowerCase()))
  );
}

/** Whether an entry has a text as it is shown, or in the arguments of a call, whose names may not be shown. */
function hasText(entry: Entry, text: string): boolean {
  const texts = [entryText(entry), ...callsOf(entry).map(({ input }) => JSON.stringify(input))];
  return texts.some((one) => one.toLowerCase().includes(text));
}

/** A call has no entry of its own: `tool-call` are the messages with calls. */
function isOfKind({ kind, payload }: Entry, wanted: string): boolean {
  return wanted === 'tool-call' ? clientCalls(payload).length > 0 : kind === wanted;
}

function toolsOf(entry: Entry): readonly string[] {
  const { kind, payload } = entry;
  if (kind === 'tool-result') return isObject(payload) ? [String(payload.toolName)] : [];
  return callsOf(entry).map(({ name }) => name);
}

function isFrom(
  { name, meta, payload }: Entry,
  { id, session }: Pick<SessionInfo, 'id' | 'session'>,
): boolean {
  if (meta.child === id || (isObject(meta.by) && meta.by.id === id)) return true;
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return name === `merge/${session}` && state.child === id;
}

/**
 * Whether an entry is of the conversation: what was said, called and returned, and what changes what is read of it.
 * Of the events those are that say why an answer is missing.
 */
export function isConversation(entry: Entry): boolean {
  const { kind, name = '' } = entry;
  if (kind === 'message') return !isNote(entry);
  if (kind === 'event') return /\/(?:error|failed|halted|aborted)$/.test(name);
  if (kind === 'anchor') return name !== 'session/start';
  return kind !== 'status' && kind !== 'ui' && !kind.startsWith('x-');
}
