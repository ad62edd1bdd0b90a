import type { Draft, HomeStore } from '@tapedeck/tape';
import { knownAs } from '../imported/change.ts';
import { isErased, withoutContent } from '../imported/erased.ts';
import type { Shown } from '../imported/imported.ts';
import { DraftMaker, LaterDraft, outlineOf, wholeDraft } from '../plan/later-draft.ts';

/** What makes drafts of the entries of a session, which read them when their content is taken. */
export function draftsIn(store: HomeStore, session: string): (entry: Shown) => Draft {
  const maker = new DraftMaker(({ seq, key }: Shown) => {
    const [entry] = store.entries.read(session, { from: seq, to: seq });
    if (entry === undefined) return [];
    const { kind, mark, name, payload, meta } = entry;
    const { again: _, usageBefore: __, ...own } = meta;
    const draft = {
      kind,
      ...(mark !== undefined && { mark }),
      ...(name !== undefined && { name }),
      payload,
      meta: own,
      key,
    };
    return [outlineOf(isErased(entry) ? withoutContent(draft) : draft)];
  });
  return (entry) => {
    const { kind, key, mark, name, content } = entry;
    const fields = { kind, key, ...(mark !== undefined && { mark }), ...(name !== undefined && { name }) };
    const draft = new LaterDraft(fields, { maker, step: entry, i: 0, bytes: 0 });
    return knownAs(draft, content);
  };
}

/** Gives a draft another name, and the same one each time. */
export function namedAs(name: string | undefined): (draft: Draft) => Draft {
  const named = new WeakMap<Draft, Draft>();
  return (draft) => {
    if (name === undefined || draft.name === name) return draft;
    const known = named.get(draft) ?? { ...wholeDraft(draft), name };
    named.set(draft, known);
    return known;
  };
}
