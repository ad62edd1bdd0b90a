import type { Entry, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isOrphan } from '../tools/open-batch.ts';
import type { AuditFinding } from './finding.ts';
import type { PlacedCall, Subject } from './subject.ts';

/** The open calls at a session's end that no process will answer. */
export async function examineCalls({ store, info, open }: Subject): Promise<readonly AuditFinding[]> {
  const orphans = open.filter(isOrphan);
  if (orphans.length === 0) return [];
  const children = await store.sessions.list({ parent: info.id, all: true });
  return orphans.map((call): AuditFinding => {
    const spawned = children
      .filter(({ spawnCall }) => spawnCall === call.toolCallId)
      .map(({ session: name }) => name);
    return {
      code: 'orphaned-call',
      session: info.session,
      seq: call.seq,
      message: messageFor(info.session, call, spawned),
      next: { act: spawned.length > 0 ? 'recover' : 'run', session: info.session },
    };
  });
}

function messageFor(
  session: string,
  { toolCallId, toolName }: PlacedCall,
  spawned: readonly string[],
): string {
  const children =
    spawned.length === 0 ? '' : `; it started ${spawned.map((name) => `'${name}'`).join(', ')}`;
  return `call '${toolCallId}' of '${toolName}' has no result, and no process runs '${session}'${children}`;
}

/** The merges from a session's inbox that were refused and not made later. */
export async function* examineRefusals({ store, info, ref }: Subject): AsyncGenerator<AuditFinding> {
  for (const name of ['merge/refused', 'inbox/refused'])
    for await (const entry of store.entries.read(info.id, { own: true, name, kind: 'event' })) {
      const payload = isObject(entry.payload) ? entry.payload : {};
      if (payload.type !== 'merge') continue;
      const child = typeof payload.child === 'string' ? await store.sessions.find(payload.child) : undefined;
      if (child !== undefined && (await deliveredAfter(store, { child: child.id, into: info.id, entry })))
        continue;
      yield {
        code: 'merge-refused',
        session: info.session,
        seq: entry.seq,
        message: `${String(payload.message)} (${String(payload.code)})`,
        next:
          child === undefined
            ? { act: 'look', session: info.session, seq: entry.seq }
            : { act: 'merge', session: ref(child) },
      };
    }
}

async function deliveredAfter(
  store: TapeStore,
  { child, into, entry }: { readonly child: string; readonly into: string; readonly entry: Entry },
): Promise<boolean> {
  for await (const line of store.lineage.read({ session: child, types: ['merge', 'discard'] }))
    if (line.into === into && (line.seq ?? 0) > entry.seq) return true;
  return false;
}
