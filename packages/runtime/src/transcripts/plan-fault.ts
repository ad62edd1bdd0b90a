import type { Draft } from '@tapedeck/tape';
import { isObject, quote } from '@tapedeck/tape/internal';
import { assertDraft } from '@tapedeck/tape/store';
import { messageOf } from '../errors.ts';
import { fitting } from '../import/fitting.ts';
import type { EndPlan, SourcePlan } from '../plan/format.ts';
import type { OpenEnd } from '../plan/open-end.ts';
import type { ConversationPlan } from '../plan/plan.ts';

/** What is wrong with a plan, and where. */
export interface PlanFault {
  readonly why: string;
  /** The `file` of the conversation that has it. */
  readonly file?: string;
}

const kinds: ReadonlySet<unknown> = new Set(['main', 'branch', 'cleared', 'subagent']);

/**
 * The first thing that is wrong with the plan of a format, which may be a program without types; undefined where it can be
 * written. Makes each draft, which would cost the formats of this project their memory: tests check those. Pure.
 */
export function planFault(plan: SourcePlan): PlanFault | undefined {
  if (!isObject(plan)) return { why: 'its plan is no object' };
  const { conversations, derived, files, counts, faults = new Map(), end } = plan;
  const fault =
    fieldFault(plan, ['format', 'session'], isText, 'is no text') ??
    fieldFault({ conversations, derived }, ['conversations', 'derived'], Array.isArray, 'is no list') ??
    fieldFault({ files, counts, faults }, ['files', 'counts', 'faults'], isMap, 'is no Map');
  const wrong = fault ?? openEndFault(end);
  if (wrong !== undefined) return { why: `its plan: ${wrong}` };
  const known = new Set(files.values());
  const places = new Map<string, number>();
  for (const [i, one] of conversations.entries()) {
    const at = `its plan, conversations[${i}]`;
    const why = conversationFault(one, at);
    const file = isObject(one) && isText(one.file) ? { file: one.file } : {};
    if (why !== undefined) return { why, ...file };
    if (places.has(one.key)) return { why: `${at}: key ${quote(one.key)} is that of another one`, ...file };
    if (!known.has(one.file)) return { why: `${at}: file is not one of its files` };
    places.set(one.key, i);
  }
  for (const [i, { parent, file }] of conversations.entries())
    if (parent !== undefined && (places.get(parent.key) ?? -1) >= i)
      return { why: `its plan, conversations[${i}]: its parent comes behind it`, file };
  return undefined;
}

/** The same of the plan of what a file has got. Pure. */
export function endPlanFault(plan: EndPlan): string | undefined {
  const at = 'its plan of the end';
  if (!isObject(plan)) return `${at} is no object`;
  const { conversation, counts, end } = plan;
  const fault = fieldFault({ counts }, ['counts'], isObject, 'is no object') ?? openEndFault(end);
  return fault === undefined ? conversationFault(conversation, `${at}, conversation`) : `${at}: ${fault}`;
}

function openEndFault(end: OpenEnd | undefined): string | undefined {
  if (end === undefined) return undefined;
  if (!isObject(end)) return 'end is no object';
  const { conversation, line, offset, keys, ids, state } = end;
  const isPlace = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
  const fault =
    fieldFault({ conversation }, ['conversation'], isText, 'is no text') ??
    fieldFault({ line, offset }, ['line', 'offset'], isPlace, 'is no number from 0 on') ??
    fieldFault({ keys }, ['keys'], (value) => value instanceof Set, 'is no Set') ??
    fieldFault({ ids }, ['ids'], (value) => typeof value === 'function', 'is no function') ??
    fieldFault({ state }, ['state'], isObject, 'is no object');
  return fault === undefined ? undefined : `end: ${fault}`;
}

function conversationFault(one: ConversationPlan, at: string): string | undefined {
  if (!isObject(one)) return `${at} is no object`;
  const { kind, spine, asides, settled, keeps } = one;
  const fault =
    fieldFault(one, ['key', 'file', 'name'], isText, 'is no text') ??
    fieldFault({ kind }, ['kind'], (kind) => kinds.has(kind), `is not one of ${[...kinds].join(', ')}`) ??
    fieldFault({ spine, asides }, ['spine', 'asides'], Array.isArray, 'is no list') ??
    fieldFault({ keeps }, ['keeps'], isMap, 'is no Map');
  if (fault !== undefined) return `${at}: ${fault}`;
  const isPlace = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) <= spine.length;
  const noPlace = `is no number from 0 to ${spine.length}`;
  if (!isPlace(settled)) return `${at}: settled ${noPlace}`;
  const keys = new Set<string>();
  for (const [i, draft] of spine.entries()) {
    const why = draftFault(draft, keys);
    if (why !== undefined) return `${at}, spine[${i}]${why}`;
  }
  for (const [i, aside] of asides.entries()) {
    const place = `${at}, asides[${i}]`;
    if (!isObject(aside)) return `${place} is no object`;
    const why = draftFault(aside.draft, keys);
    if (why !== undefined) return `${place}${why}`;
    if (!isPlace(aside.after)) return `${place}: after ${noPlace}`;
  }
  return undefined;
}

/** @param keys those of the drafts before it, to which it adds its own */
function draftFault(draft: Draft, keys: Set<string>): string | undefined {
  if (!isObject(draft)) return ' is no object';
  const { key, meta } = draft;
  if (key === undefined) return ' has no key';
  if (keys.has(key)) return ` has the key ${quote(key)} of another draft`;
  keys.add(key);
  if (meta?.source !== 'import') return ": meta.source is not 'import'";
  const why = entryFault(draft);
  // One that is only too large is shortened when it is written.
  return why === undefined || entryFault(() => fitting(draft)) === undefined
    ? undefined
    : ` is no entry: ${why}`;
}

/** Why a tape takes no entry of a draft. */
function entryFault(draft: Draft | (() => Draft)): string | undefined {
  try {
    assertDraft(typeof draft === 'function' ? draft() : draft);
    return undefined;
  } catch (error) {
    return messageOf(error).replace(/^cannot append: /, '');
  }
}

/** The first of some fields that is not what it has to be. */
function fieldFault<Field extends string>(
  object: Readonly<Record<Field, unknown>>,
  fields: readonly Field[],
  isRight: (value: unknown) => boolean,
  not: string,
): string | undefined {
  const field = fields.find((one) => !isRight(object[one]));
  return field === undefined ? undefined : `${field} ${not}`;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isMap(value: unknown): boolean {
  return value instanceof Map;
}
