import { isObject, isTooDeep } from '../entry/json.ts';
import { isUlid, nameFault } from '../entry/name.ts';
import type { LineageLine } from '../lineage/line.ts';
import { lifecycles, tasks } from '../tape/tape.ts';
import type { Checked } from './check.ts';

type Is = (value: unknown) => boolean;

const text: Is = (v) => typeof v === 'string' && v.isWellFormed() && v.length <= 4096;
const ulid: Is = (v) => typeof v === 'string' && isUlid(v);
const hash: Is = (v) => typeof v === 'string' && /^[0-9a-f]{64}$/.test(v);
const position: Is = (v) => Number.isSafeInteger(v) && (v as number) >= 0;
const iso: Is = (v) =>
  typeof v === 'string' && !Number.isNaN(Date.parse(v)) && new Date(v).toISOString() === v;
const orNull =
  (is: Is): Is =>
  (v) =>
    v === null || is(v);
const oneOf =
  (values: readonly string[]): Is =>
  (v) =>
    typeof v === 'string' && values.includes(v);
const intentionTexts: ReadonlySet<string> = new Set(['next_steps', 'context_summary', 'trigger_on_complete']);

const always: Readonly<Record<string, Is>> = {
  v: (v) => v === 1,
  g: (v) => Number.isSafeInteger(v) && (v as number) > 0,
  event_id: ulid,
  type: oneOf(['session', 'fork', 'status', 'merge', 'discard', 'alias', 'unalias', 'archive', 'link']),
  session_id: text,
  parent_session_id: orNull(text),
  from_anchor: orNull(text),
  created_at: iso,
  status: text,
  at: iso,
  session: ulid,
  parent: orNull(ulid),
  tape: text,
  kind: text,
  lifecycle: oneOf(lifecycles),
  prev: hash,
};

const sometimes: Readonly<Record<string, Is>> = {
  row: hash,
  was: text,
  base: position,
  range: (v) => v === null || (Array.isArray(v) && v.length === 2 && v.every(position)),
  spawn_key: text,
  intention: (v) =>
    isObject(v) &&
    hash(v.digest) &&
    Object.entries(v).every(
      ([field, value]) => field === 'digest' || (intentionTexts.has(field) && text(value)),
    ),
  into: ulid,
  into_session_id: text,
  seq: position,
  received: position,
  text_version: position,
  parent_head: hash,
  child_head: hash,
  alias: text,
  reason: text,
  edge: (v) => typeof v === 'string' && nameFault(v) === undefined,
  derived: (v) => v === true,
  evidence: text,
  call: text,
  task: oneOf(tasks),
  delivery: oneOf(['merged', 'discarded']),
};

/** Parses a line of the lineage strictly: each field is known, and has its form. */
export function parseBundleLine(value: unknown): Checked<LineageLine> {
  const fault = (why: string) => ({ fault: `the line of the lineage ${why}` });
  if (typeof value !== 'string' || value.length > 64 * 1024) return fault('is not a text, or too long');
  if (isTooDeep(value)) return fault('is nested too deep');
  let line: unknown;
  try {
    line = JSON.parse(value);
  } catch {
    return fault('is not JSON');
  }
  if (!isObject(line)) return fault('is not an object');
  for (const [field, one] of Object.entries(line)) {
    const is = Object.hasOwn(always, field)
      ? always[field]
      : Object.hasOwn(sometimes, field)
        ? sometimes[field]
        : undefined;
    if (is === undefined) return fault(`has an unknown field '${field.slice(0, 40).toWellFormed()}'`);
    if (!is(one)) return fault(`has a wrong '${field}'`);
  }
  for (const field of Object.keys(always)) if (!Object.hasOwn(line, field)) return fault(`has no '${field}'`);
  const { type } = line;
  const has = (field: string) => Object.hasOwn(line, field);
  if ((type === 'merge' || type === 'discard') && !(has('into') && has('seq') && Array.isArray(line.range)))
    return fault('is of a merge, and does not say of which');
  if ((type === 'alias' || type === 'unalias') && !has('alias')) return fault('gives no alias');
  if (type === 'link' && !has('edge')) return fault('is of a link, and does not say of which');
  return { value: line as unknown as LineageLine };
}
