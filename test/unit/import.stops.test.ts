import { exportSession } from '@tapedeck/runtime';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { assistant, type ForkRequest, note, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

/** What is here before an import, and the transcripts that it reads. */
interface Scene {
  readonly prepare?: (store: SqliteTapeStore) => unknown;
  readonly files: (store: SqliteTapeStore) => Promise<readonly Raw[][]> | readonly Raw[][];
  /** How many sessions it forks. */
  readonly forks: number;
}

/** The methods that commit. */
const writing =
  /^(?:entries\.(?:append|redact)|history\.|lineage\.(?:fork|merge|link|unlink)|imports\.(?!unfinished)|sessions\.(?:open|update))/;

const usage = { output_tokens: 5 };
const own = (sessionId: string) => (record: Raw) => ({ ...record, sessionId });

const begun: readonly Raw[] = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1' }, [says('a plan')], { usage }),
];
const inside = { isSidechain: true, agentId: 'x1' };
const tree: readonly Raw[] = [
  ...begun,
  person({ uuid: 'u2', parent: 'a1' }, 'do it'),
  model({ uuid: 'a2', parent: 'u2' }, [calls('t1', 'Task')], { usage }),
  person({ uuid: 'su1' }, 'look', inside),
  model({ uuid: 'sa1', parent: 'su1' }, [calls('st1')], inside),
  person({ uuid: 'sr1', parent: 'sa1' }, [returns('st1')], inside),
  model({ uuid: 'sa2', parent: 'sr1' }, [says('all is well')], inside),
  person({ uuid: 'r2', parent: 'a2' }, [returns('t1', 'all is well')], {
    toolUseResult: { status: 'completed', agentId: 'x1' },
  }),
  model({ uuid: 'a3', parent: 'r2' }, [says('did it')], { usage }),
  person({ uuid: 'u3', parent: 'a1' }, 'do it in another way'),
  model({ uuid: 'a4', parent: 'u3' }, [says('did it so')], { usage }),
  person({ uuid: 'u4', parent: 'a3' }, 'and this'),
  person({ uuid: 'u5', parent: 'a3' }, 'or that'),
];
const compacted: readonly Raw[] = [
  ...begun,
  {
    ...{ type: 'system', subtype: 'compact_boundary', uuid: 'b1', parentUuid: null, sessionId: 's-1' },
    timestamp: '2026-03-12T09:00:02.000Z',
    compactMetadata: { trigger: 'manual', preservedSegment: { headUuid: 'a1', tailUuid: 'a1' } },
  },
  person({ uuid: 'b1-s', parent: 'b1' }, 'a summary', { isCompactSummary: true }),
  person({ uuid: 'u2', parent: 'b1-s' }, 'go on'),
  model({ uuid: 'a2', parent: 'u2' }, [says('went on')], { usage }),
];
const forked = (record: Raw): Raw => ({
  ...record,
  forkedFrom: { sessionId: 's-1', messageUuid: record.uuid },
});
const renamed = (record: Raw): Raw => ({
  ...record,
  uuid: `r-${record.uuid}`,
  parentUuid: record.parentUuid === null ? null : `r-${record.parentUuid}`,
});

/** A session of the home as Claude Code continues it, in two ways. */
async function continued(store: SqliteTapeStore, session: string): Promise<readonly Raw[][]> {
  const pieces = exportSession(store, session, { format: 'claude-code', project: '/' });
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) {
      text += value;
      continue;
    }
    const sessionId = value.transcript?.id ?? '';
    const records = text.split('\n').slice(0, -1);
    const all = records.map((line) => JSON.parse(line) as Raw);
    const parent = String(all.findLast(({ uuid }) => uuid !== undefined)?.uuid);
    const more = [
      person({ uuid: 'n1', parent }, 'more'),
      model({ uuid: 'n2', parent: 'n1' }, [says('and more')], { usage }),
      person({ uuid: 'n3', parent: 'n1' }, 'other'),
    ];
    return [[...all, ...more.map(own(sessionId))]];
  }
}

/** A transcript, and the same one once a prompt was typed anew behind a record of it. */
const leaves = (records: readonly Raw[], parent: string, sessionId: string): Raw[] => [
  ...records,
  { ...person({ uuid: 'l9', parent }, 'typed anew'), sessionId },
];
const resumed: readonly Raw[] = [
  ...begun.map(renamed),
  person({ uuid: 'c2', parent: 'r-a1' }, 'go on'),
  model({ uuid: 'c3', parent: 'c2' }, [says('went on')], { usage }),
].map(own('s-2'));
const summarised = compacted.map(({ compactMetadata: _, ...record }): Raw => record);
const behindCompacted: readonly Raw[] = [
  ...summarised.slice(2).map(forked),
  person({ uuid: 'c2', parent: 'a2' }, 'elsewhere'),
  model({ uuid: 'c3', parent: 'c2' }, [says('went elsewhere')], { usage }),
].map(own('s-2'));

const scenes: Readonly<{ [name: string]: Scene }> = {
  'branches and a subagent': {
    files: () => [[...tree]],
    forks: 3,
  },
  'a prompt that was typed anew since': {
    prepare: (store) => take(store, [[...begun, person({ uuid: 'u2', parent: 'a1' }, 'do it')]]),
    files: () => [[...tree]],
    forks: 3,
  },
  'a branch, of which a prompt was typed anew since': {
    prepare: (store) => take(store, [[...tree.slice(0, 12)]]),
    files: () => [
      [...tree, person({ uuid: 'u6', parent: 'a4' }, 'then'), person({ uuid: 'u7', parent: 'u3' }, 'or so')],
    ],
    forks: 4,
  },
  'a copy that goes on elsewhere': {
    files: () => [
      [...begun, person({ uuid: 'u2', parent: 'a1' }, 'do it')],
      [...begun.map(forked), person({ uuid: 'c2', parent: 'a1' }, 'do it elsewhere')].map(own('s-2')),
    ],
    forks: 1,
  },
  'a copy of a compacted session, with a branch': {
    files: () => [
      [...compacted],
      [
        ...compacted.map(forked),
        person({ uuid: 'c2', parent: 'a2' }, 'elsewhere'),
        person({ uuid: 'c3', parent: 'a2' }, 'and elsewhere'),
      ].map(own('s-2')),
    ],
    forks: 2,
  },
  'a session that was resumed under new ids': {
    files: () => [
      [...tree.slice(0, 3)],
      [...begun.map(renamed), person({ uuid: 'c2', parent: 'r-a1' }, 'go on')].map(own('s-2')),
    ],
    forks: 1,
  },
  'a session that went on here': {
    prepare: (store) => {
      take(store, [[...begun]]);
      store.entries.append('s-1', [user('and here', { run: 'r-1' }), assistant('a run')]);
    },
    files: () => [[...compacted]],
    forks: 1,
  },
  'an exported session that was continued': {
    prepare: (store) => {
      store.sessions.open('main');
      store.entries.append('main', [user('First.'), assistant('Found.'), user('Second.')]);
      store.entries.append('main', [assistant('Found that.')]);
    },
    files: (store) => continued(store, 'main'),
    forks: 2,
  },
  'a continued export, of which a prompt was typed anew since': {
    prepare: async (store) => {
      store.sessions.open('main');
      store.entries.append('main', [user('First.'), assistant('Found.')]);
      take(
        store,
        (await continued(store, 'main')).map((records) => records.slice(0, -1)),
      );
    },
    files: (store) => continued(store, 'main'),
    forks: 2,
  },
  'a session that was resumed under new ids, of which a prompt was typed anew since': {
    prepare: (store) => take(store, [[...tree.slice(0, 3)], resumed]),
    files: () => [leaves(resumed, 'r-a1', 's-2')],
    forks: 2,
  },
  'a copy from a compaction on, of which a prompt was typed anew since': {
    prepare: (store) => take(store, [summarised, behindCompacted]),
    files: () => [leaves(behindCompacted, 'a2', 's-2')],
    forks: 2,
  },
  'a source of which a prompt was typed anew since another record was erased': {
    prepare: (store) => {
      take(store, [[...begun, person({ uuid: 'u2', parent: 'a1' }, 'do it')]]);
      store.entries.redact('s-1', [3], 'private');
    },
    files: () => [[...tree]],
    forks: 3,
  },
  'a source of which prompts were typed anew since, on the way back': {
    prepare: (store) =>
      take(store, [
        [
          ...begun,
          person({ uuid: 'u2', parent: 'a1' }, 'do it'),
          model({ uuid: 'a2', parent: 'u2' }, [says('did it')], { usage }),
          person({ uuid: 'u3', parent: 'a2' }, 'more of it'),
        ],
      ]),
    files: () => [
      [
        ...begun,
        person({ uuid: 'u2', parent: 'a1' }, 'do it'),
        model({ uuid: 'a2', parent: 'u2' }, [says('did it')], { usage }),
        person({ uuid: 'u3', parent: 'a2' }, 'more of it'),
        person({ uuid: 'u4', parent: 'a2' }, 'less of it'),
        person({ uuid: 'u5', parent: 'a1' }, 'leave it'),
      ],
    ],
    forks: 2,
  },
};

/** Imports transcripts, and says what was added to which sessions. */
function take(store: SqliteTapeStore, files: readonly (readonly Raw[])[]) {
  return files.flatMap((records) => {
    const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
    const done = reconcile(store, planClaudeCode({ name: 'file', lines }));
    return done.map(({ session, created, added }) => ({ session, created, added }));
  });
}

/** What a model sees of each session, by name. */
function views(store: SqliteTapeStore): ReadonlyMap<string, string> {
  const names = store.sessions.list({ all: true }).map(({ session }) => session);
  return new Map(names.map((name) => [name, JSON.stringify(view(store.views.entries(name)).messages)]));
}

/** The messages of some views. */
const messagesIn = (shown: ReadonlyMap<string, string>): ReadonlySet<string> =>
  new Set([...shown.values()].flatMap((text) => JSON.parse(text).map((one: unknown) => JSON.stringify(one))));

/** What is in a home: of each session its place, its view and its own entries; and the tokens of all. */
function contents(store: SqliteTapeStore) {
  const shown = views(store);
  const sessions = store.sessions.list({ all: true }).map((info) => ({
    session: info.session,
    parent: treeParentOf(info).parent,
    forkedFrom: info.parent,
    shows: shown.get(info.session),
    has: [...store.entries.read(info.id, { own: true })]
      // The key of a merge names heads, which no two homes share.
      .map(({ key, name, kind }) => key?.replace(/^merge:.*/, 'merge') ?? name ?? kind)
      .toSorted(),
  }));
  const output = store.sessions.calls().reduce((sum, one) => sum + one.usage.output, 0);
  return { sessions: sessions.toSorted((a, b) => (a.session < b.session ? -1 : 1)), output };
}

/** A home of a process that another one overtakes at its nth commit. */
function overtaken(store: SqliteTapeStore, n: number, act: () => void): SqliteTapeStore {
  let left = n;
  return wrapStore(store, (call) => {
    if (writing.test(call.method)) left -= 1;
    if (writing.test(call.method) && left === 0) act();
    return call.act();
  });
}

/** A home of a process that ends behind its nth commit; `looks` is called behind each. */
function endsBehind(store: SqliteTapeStore, n: number, looks: () => void): SqliteTapeStore {
  let left = n;
  return wrapStore(store, ({ method, act }) => {
    if (left === 0) throw new Error('the process has ended');
    const receipt = act();
    if (!writing.test(method)) return receipt;
    left -= 1;
    looks();
    if (left === 0) throw new Error('the process has ended');
    return receipt;
  });
}

/** A home before the import of a scene, the files that it reads, and what a whole import leaves. */
async function played({ prepare, files }: Scene) {
  const prepared = async () => {
    const store = openStore();
    await prepare?.(store);
    return store;
  };
  using store = await prepared();
  const read = await files(store);
  const before = views(store);
  let commits = 0;
  const count = () => {
    commits += 1;
  };
  const receipts = take(endsBehind(store, Number.POSITIVE_INFINITY, count), read);
  const forked = [...store.lineage.read({ types: ['fork'] })].length;
  return { prepared, read, before, commits, receipts, after: views(store), end: contents(store), forked };
}

describe.each(Object.entries(scenes))('an import of %s', (_, scene) => {
  test('shows no part of a session behind any commit, and can end there: the next one ends as one import', async () => {
    const { prepared, read, before, commits, after, end, forked } = await played(scene);
    expect(forked).toBe(scene.forks);
    for (let n = 1; n <= commits; n += 1) {
      using store = await prepared();
      const looks = () => {
        for (const [session, shows] of views(store))
          expect([n, session, [before.get(session), after.get(session)]]).toEqual([
            ...[n, session, expect.arrayContaining([shows])],
          ]);
      };
      expect(() => take(endsBehind(store, n, looks), read)).toThrow('the process has ended');
      take(store, read);
      expect([n, contents(store)]).toEqual([n, end]);
      expect(store.imports.unfinished()).toEqual([]);
      expect([...store.verify()]).toEqual([]);
    }
  });

  test('shows behind each commit, in some session, all that was shown before and is at the end', async () => {
    const { prepared, read, before, after } = await played(scene);
    const kept = messagesIn(before).intersection(messagesIn(after));
    using store = await prepared();
    const looks = () => expect(kept.difference(messagesIn(views(store)))).toEqual(new Set());
    take(endsBehind(store, Number.POSITIVE_INFINITY, looks), read);
  });

  test.each([
    ['begins anew', 'with the time of a record', true],
    ['does not begin anew', 'that is not one of its records', false],
  ])(
    '%s where something %s is erased elsewhere before any commit, and ends as one import',
    async (...[, , isOfIt]) => {
      const { prepared, read, commits, end, receipts } = await played(scene);
      const contentsButElsewhere = (store: SqliteTapeStore) => {
        const { sessions, output } = contents(store);
        return { sessions: sessions.filter(({ session }) => session !== 'elsewhere'), output };
      };
      const { timestamp } = read.flat().findLast(({ uuid }) => uuid !== undefined) ?? {};
      const meta = { source: 'import', timestamp: String(timestamp) };
      for (let n = 1; n <= commits; n += 1) {
        using store = await prepared();
        store.sessions.open('elsewhere');
        const draft = isOfIt ? { ...note('elsewhere', 'private', meta), key: 'elsewhere' } : user('private');
        const { to } = store.entries.append('elsewhere', [draft]);
        // What another process does is not watched.
        const unwatched = { before: () => undefined };
        const redact = () => store.entries.redact('elsewhere', [to], 'private');
        const erase = () => store.watched(unwatched, redact);
        let acts = 0;
        const counted = wrapStore(overtaken(store, n, erase), ({ method, act }) => {
          if (writing.test(method)) acts += 1;
          return act();
        });
        expect([n, take(counted, read)]).toEqual([n, receipts]);
        expect([n, contentsButElsewhere(store)]).toEqual([n, end]);
        expect([n, acts > commits]).toEqual([n, isOfIt]);
        expect(store.imports.unfinished()).toEqual([]);
      }
    },
  );

  test('ends as one import when another one overtakes it before any commit', async () => {
    const { prepared, read, commits, end } = await played(scene);
    for (let n = 1; n <= commits; n += 1) {
      using store = await prepared();
      take(
        overtaken(store, n, () => take(store, read)),
        read,
      );
      expect([n, contents(store)]).toEqual([n, end]);
    }
  });
});

const [copied, compactedCopy, underNewIds] = [
  'a copy that goes on elsewhere',
  'a copy of a compacted session, with a branch',
  'a session that was resumed under new ids',
].map((name) => scenes[name] as Scene);

test.each([
  ['a session and its copy', copied],
  ['a compacted session and its copy', compactedCopy],
  ['a session and what was resumed of it under new ids', underNewIds],
])('%s, which another one imports before any commit, end as one behind the other', async (_, scene) => {
  const files = await (scene as Scene).files(openStore());
  for (const [own, others] of [files, files.toReversed()] as const) {
    const inTurn = [own, others].map((first) => {
      using store = openStore();
      take(store, [first, first === own ? others : own] as Raw[][]);
      return contents(store);
    });
    let commits = 0;
    take(
      endsBehind(openStore(), Number.POSITIVE_INFINITY, () => {
        commits += 1;
      }),
      [own as Raw[]],
    );
    for (let n = 1; n <= commits; n += 1) {
      using store = openStore();
      take(
        overtaken(store, n, () => take(store, [others as Raw[]])),
        [own as Raw[]],
      );
      expect([n, inTurn]).toEqual([n, expect.arrayContaining([contents(store)])]);
      expect(store.imports.unfinished()).toEqual([]);
      expect([...store.verify()]).toEqual([]);
    }
  }
});

test('a fork that an earlier version left with nothing of its own, since it was killed there, gets that', async () => {
  for (const name of ['branches and a subagent', 'a copy that goes on elsewhere']) {
    const scene = scenes[name] as Scene;
    const { prepared, read, end } = await played(scene);
    using store = await prepared();
    const earlier = wrapStore(store, ({ method, args: [parent, request], act, actWith }) => {
      if (method !== 'lineage.fork') return act();
      actWith([parent, { ...(request as ForkRequest), first: [] }]);
      throw new Error('the process has ended');
    });
    expect(() => take(earlier, read)).toThrow('the process has ended');
    take(store, read);
    expect(contents(store)).toEqual(end);
  }
});

test('an older reading of a growing file that another import writes before any commit counts no answer twice', () => {
  const v1 = [...begun, person({ uuid: 'u2', parent: 'a1' }, 'do it')];
  const v2 = [...v1, model({ uuid: 'a2', parent: 'u2' }, [says('did it')], { usage })];
  const v3 = [
    ...v2,
    person({ uuid: 'u3', parent: 'a1' }, 'do it in another way'),
    model({ uuid: 'a3', parent: 'u3' }, [says('did it so')], { usage }),
  ];
  const state = (store: SqliteTapeStore) => ({
    sessions: store.sessions
      .list({ all: true, deleted: false })
      .map(({ session }) => [session, view(store.views.entries(session)).messages])
      .toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1)),
    output: store.sessions.calls().reduce((sum, one) => sum + one.usage.output, 0),
  });
  using whole = openStore();
  take(whole, [v3]);
  for (let n = 1; n <= 4; n += 1) {
    using store = openStore();
    take(store, [v1]);
    take(
      overtaken(store, n, () => take(store, [v2])),
      [v3],
    );
    expect([n, state(store)]).toEqual([n, state(whole)]);
    expect([...store.verify()]).toEqual([]);
  }
});
