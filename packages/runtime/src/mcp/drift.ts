import { type Draft, type Json, note, type TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** What has become of the tools of a server since a session was last offered them. */
export interface Drift {
  readonly server: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Those whose description or schema changed. */
  readonly changed: readonly string[];
}

/** How the names of the notes begin that hold the digests of the tools of a server. */
export const serverNote = 'mcp/';

/** The difference between two lists of digests; undefined without one. Pure. */
function driftOf(
  server: string,
  before: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): Drift | undefined {
  const names = (list: object) => Object.keys(list).toSorted();
  const added = names(now).filter((name) => !Object.hasOwn(before, name));
  const removed = names(before).filter((name) => !Object.hasOwn(now, name));
  const changed = names(now).filter((name) => Object.hasOwn(before, name) && before[name] !== now[name]);
  return added.length + removed.length + changed.length === 0
    ? undefined
    : { server, added, removed, changed };
}

/** The notes about the tools of a server that a session is offered: none when they are those of the last run. */
export async function serverNotes(
  store: TapeStore,
  session: string,
  { run, server, digests }: { run: string; server: string; digests: Readonly<Record<string, string>> },
): Promise<{ readonly drafts: readonly Draft[]; readonly drift: Drift | undefined }> {
  const name = `${serverNote}${server}`;
  const [last] = await Array.fromAsync(store.entries.read(session, { name, last: 1 }));
  const before = last !== undefined && isObject(last.payload) ? last.payload.tools : undefined;
  const seen = note(name, { run, tools: digests as unknown as Json }, { run });
  if (!isObject(before)) return { drafts: [seen], drift: undefined };
  const drift = driftOf(server, before, digests);
  if (drift === undefined) return { drafts: [], drift };
  return { drafts: [note('tools/drift', { run, ...drift } as unknown as Json, { run }), seen], drift };
}

/** Says what changed. Pure. */
export function driftText({ server, added, removed, changed }: Drift): string {
  const parts = Object.entries({ added, removed, changed }).flatMap(([what, names]) =>
    names.length === 0 ? [] : [`${what} ${names.join(', ')}`],
  );
  return `the tools of MCP server '${server}' are not those of the last run: ${parts.join('; ')}`;
}
