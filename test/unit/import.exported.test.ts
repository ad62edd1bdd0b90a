import { exportSession } from '@tapedeck/runtime';
import {
  cleanerFor,
  parseJsonLines,
  planClaudeCode,
  type Reconciled,
  type ReconcileOptions,
  reconcile,
} from '@tapedeck/runtime/import';
import {
  anchor,
  assistant,
  compaction,
  type Draft,
  handoff,
  type JsonObject,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { isObject, omit, treeParentOf } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { countedIds } from '../support/ids.ts';
import { openStore } from '../support/store.ts';
import { tokenShapes } from '../support/token-shapes.ts';

/** A transcript of Claude Code, to which the program appends. */
interface Transcript {
  readonly id: string;
  readonly records: readonly JsonObject[];
}

async function exported(
  store: SqliteTapeStore,
  session: string,
  at?: number,
  project = '/',
): Promise<Transcript> {
  const options = { format: 'claude-code', project, ...(at !== undefined && { at }) } as const;
  const pieces = exportSession(store, session, options);
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) text += value;
    else
      return {
        id: value.transcript?.id ?? '',
        records: text
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as JsonObject),
      };
  }
}

function never(): never {
  throw new Error('the session is missing');
}

let ids = 0;

/** Appends a prompt and an answer, with what Claude Code writes around them. */
function continued({ id, records }: Transcript, ...more: readonly JsonObject[]): Transcript {
  let last = records.findLast(({ parentUuid }) => parentUuid !== undefined)?.uuid ?? null;
  const written = more.map((fields): JsonObject => {
    if (fields.type === 'mode') return { ...fields, sessionId: id };
    ids += 1;
    const uuid = `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
    const parentUuid = fields.parentUuid === undefined ? last : fields.parentUuid;
    last = uuid;
    const timestamp = new Date(Date.UTC(2027, 0, 1, 0, 0, ids)).toISOString();
    return {
      parentUuid,
      isSidechain: false,
      ...fields,
      uuid,
      timestamp,
      sessionId: id,
      cwd: '/',
      version: '2.1.9',
    };
  });
  return { id, records: [...records, ...written] };
}

const prompt = (text: string) => ({ type: 'user', message: { role: 'user', content: text } });
const answer = (text: string) => ({
  type: 'assistant',
  message: {
    id: `msg_${text}`,
    role: 'assistant',
    model: 'claude',
    content: [{ type: 'text', text }],
    usage: { input_tokens: 10, output_tokens: 2 },
  },
});

function imported(
  store: SqliteTapeStore,
  { id, records }: Transcript,
  options?: ReconcileOptions,
): readonly Reconciled[] {
  const bytes = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
  const { records: lines } = parseJsonLines([bytes], { file: `${id}.jsonl` });
  return reconcile(store, planClaudeCode({ name: id, lines }), options);
}

/** The messages that Anthropic is shown of a session. */
function seen(store: SqliteTapeStore, session: string): unknown {
  const { messages } = view(store.views.entries(session), { target: { provider: 'anthropic.messages' } });
  // An import knows every answer as one of Anthropic.
  return JSON.parse(JSON.stringify(messages));
}

/** Everything that all tapes have, once for each entry. */
function stored(store: SqliteTapeStore): string[] {
  return store.sessions
    .list()
    .flatMap(({ id }) => [...store.entries.read(id, { own: true })])
    .map(({ payload }) => JSON.stringify(payload));
}

/** Sessions of each kind: plain, rewound, merged and compacted, forked, and handed over. */
function family(): SqliteTapeStore {
  const store = openStore();
  const call = { toolCallId: 'a:b', toolName: 'my.tool' };
  store.sessions.open('main');
  const append = (...drafts: readonly Draft[]) => store.entries.append('main', [...drafts]);
  append(user('First.'), assistant([toolCall('a:b', 'my.tool', { at: 1 })]), toolResult(call, 'found'));
  append(assistant('Found.'));
  const { from } = append(user('Wrong.'), assistant('Worse.'));
  store.history.rewind('main', from - 1);
  append(user('Right.'), assistant('Better.'));
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Test it.' } });
  store.entries.append('child', [assistant('Tested.')]);
  store.lineage.merge('child');
  const { from: kept } = append(user('Kept prompt.'), assistant('Kept answer.'));
  append(compaction({ summary: 'All is well.', range: [2, kept - 1] }, { keepFrom: kept }));
  append(user('Behind it.'), assistant('Yes.'));
  store.sessions.open('handed');
  store.entries.append('handed', [user('Plan.'), assistant('Planned.')]);
  store.entries.append('handed', [handoff('next', { summary: 'Planned.', files: 3 })]);
  store.entries.append('handed', [user('Do it.'), assistant('Done.')]);
  return store;
}

const sessions = ['main', 'child', 'handed'] as const;

test.each(sessions)('%s: an export that was not continued adds nothing to its home', async (session) => {
  using store = family();
  const before = stored(store);
  const transcript = await exported(store, session);
  expect(imported(store, transcript)).toMatchObject([{ session, created: false, added: 0 }]);
  expect(stored(store)).toEqual(before);
});

test.each(sessions)(
  '%s: what Claude Code added is a fork behind what it was given, once',
  async (session) => {
    using store = family();
    const before = stored(store);
    const first = continued(
      await exported(store, session),
      { type: 'mode', mode: 'normal' },
      prompt('Go on.'),
      answer('On.'),
    );
    const [made] = imported(store, first);
    expect(made).toMatchObject({ session: first.id, created: true });
    expect(store.sessions.find(first.id)?.parent).toBe(session);
    const shown = [...(seen(store, session) as object[]), { role: 'user' }, { role: 'assistant' }];
    expect(seen(store, first.id)).toMatchObject(shown);
    const added = stored(store).filter((text) => !before.includes(text));
    expect(added.filter((text) => /"role":"(?:user|assistant)"/.test(text))).toHaveLength(2);
    expect(added.filter((text) => text.includes('"type":"mode"'))).toHaveLength(1);
    expect(added.filter((text) => text.includes('"tapedeck"'))).toEqual([]);

    expect(imported(store, first)).toMatchObject([{ added: 0 }]);
    const second = continued(first, prompt('More.'), answer('More it is.'));
    expect(imported(store, second)).toMatchObject([{ session: first.id, created: false, added: 2 }]);
    expect([...store.verify()]).toEqual([]);
  },
);

test.each(sessions)(
  '%s: a home that does not know the session imports it whole, with the same view',
  async (session) => {
    using store = family();
    const transcript = continued(await exported(store, session), prompt('Go on.'), answer('On.'));
    imported(store, transcript);
    using other = openStore();
    imported(other, transcript);
    const texts = (of: SqliteTapeStore) =>
      JSON.stringify(seen(of, transcript.id)).replaceAll(
        /"(?:toolName|providerOptions)":(?:"[^"]*"|\{[^}]*\})/g,
        '',
      );
    expect(texts(other)).toEqual(texts(store));
  },
);

test('a session that went on in both places is forked where they part', async () => {
  using store = family();
  const transcript = continued(await exported(store, 'main'), prompt('There.'), answer('There it is.'));
  store.entries.append('main', [user('Here.'), assistant('Here it is.')]);
  imported(store, transcript);
  expect(JSON.stringify(seen(store, 'main'))).toContain('Here it is.');
  const there = JSON.stringify(seen(store, transcript.id));
  expect(there).toContain('There it is.');
  expect(there).not.toContain('Here it is.');

  // From there, it goes on here and there again.
  store.entries.append(transcript.id, [user('Back here.'), assistant('Welcome.')]);
  const again = continued(await exported(store, transcript.id), prompt('Out.'), answer('Out it is.'));
  expect(again.id).not.toBe(transcript.id);
  imported(store, again);
  expect(store.sessions.find(again.id)?.parent).toBe(transcript.id);
  expect(stored(store).filter((text) => text.includes('There it is.'))).toHaveLength(1);
});

test('a transcript of Claude Code goes here and back as one lineage', async () => {
  using store = openStore();
  const id = '11111111-2222-4333-8444-555555555555';
  const own = continued({ id, records: [] }, prompt('First.'), answer('One.'));
  imported(store, own);
  // Unchanged, it keeps its id, and its records their uuids.
  const same = await exported(store, id);
  expect(same.id).toBe(id);
  for (const [i, { uuid, version, timestamp }] of own.records.entries())
    expect(same.records[i]).toMatchObject({ uuid, version, timestamp, sessionId: id });
  expect(imported(store, same)).toMatchObject([{ session: id, added: 0 }]);

  store.entries.append(id, [user('Here.'), assistant('Two.')]);
  const back = continued(await exported(store, id), prompt('There.'), answer('Three.'));
  expect(back.id).not.toBe(id);
  imported(store, back);
  expect(store.sessions.find(back.id)?.parent).toBe(id);
  expect(seen(store, back.id)).toMatchObject(
    ['user', 'assistant', 'user', 'assistant', 'user', 'assistant'].map((role) => ({ role })),
  );
  for (const text of ['First.', 'One.', 'Here.', 'Two.', 'There.', 'Three.'])
    expect(
      stored(store).filter((one) => one.includes(`"${text}"`)),
      text,
    ).toHaveLength(1);
  for (const again of [own, back, own]) imported(store, again);
  expect(treeParentOf(store.sessions.find(back.id) ?? never()).parent).toBe(id);
  expect(treeParentOf(store.sessions.find(id) ?? never()).parent).toBeUndefined();
  // The original grows; the session that went on here stays as it is.
  imported(store, continued(own, prompt('Elsewhere.'), answer('Four.')));
  expect(JSON.stringify(seen(store, id))).not.toContain('Four.');
  expect(stored(store).filter((one) => one.includes('"One."'))).toHaveLength(1);
});

test('an export of what follows a /clear in its file is stored once in a home that lost both, however often it is read', async () => {
  using store = openStore();
  const id = '11111111-2222-4333-8444-555555555555';
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Task', input: {} };
  const asks = { ...answer('Two.'), requestId: 'req_2' };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Two.' };
  const own = continued(
    { id, records: [] },
    ...[prompt('First.'), answer('One.'), { ...prompt('Second.'), parentUuid: null }],
    { ...asks, message: { ...asks.message, content: [call] } },
    // An export does not say which subagent a result is of.
    {
      type: 'user',
      message: { role: 'user', content: [result] },
      toolUseResult: { status: 'completed', agentId: 'a1' },
    },
  );
  imported(store, own);
  const [cleared = ''] = store.sessions.list().flatMap(({ session }) => (session === id ? [] : session));
  store.entries.append(cleared, [user('Here.'), assistant('Three.')]);
  const back = continued(await exported(store, cleared), prompt('There.'), answer('Four.'));

  using other = openStore(':memory:', { newId: countedIds('01JE') });
  for (const one of [own, back]) imported(other, one);
  const [views, all] = [seen(other, back.id), stored(other)];
  for (const text of ['Second.', 'Two.', 'Here.', 'Three.', 'There.', 'Four.'])
    expect(
      all.filter((one) => !one.includes('last-prompt') && one.includes(`"${text}"`)),
      text,
    ).toHaveLength(1);
  for (const one of [own, back, back]) imported(other, one);
  expect(stored(other)).toEqual(all);
  expect(seen(other, back.id)).toEqual(views);
});

test('an answer that says the same twice says it twice in another home', async () => {
  using store = openStore();
  store.sessions.open('main');
  const said = ['Wait.', 'Look.', 'Wait.'].map((text) => ({ type: 'text', text }));
  store.entries.append('main', [user('First.'), assistant(said), user('Well?')]);
  const given = continued(await exported(store, 'main'), answer('On.'));
  using other = openStore();
  for (const home of [store, other]) {
    const [made] = imported(home, given);
    expect(JSON.stringify(seen(home, made?.session ?? ''))).toMatch(/Wait\..*Look\..*Wait\..*Well/);
  }
});

test('a subagent that knows what its parent knew counts nothing of an exported session again', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('First.'), assistant('One.', { usage: { input: 3, output: 5 } })]);
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Task', input: {} };
  const asks = answer('Two.');
  const { id, records } = continued(await exported(store, 'main'), prompt('There.'), {
    ...asks,
    message: { ...asks.message, content: [call] },
  });
  const bytes = (all: readonly JsonObject[]) =>
    Buffer.from(all.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const own = { isSidechain: true, agentId: 'x1', sessionId: id };
  const forked = [
    {
      type: 'fork-context-ref',
      agentId: 'x1',
      parentSessionId: id,
      parentLastUuid: records.at(-2)?.uuid ?? '',
    },
    { ...answer('Three.'), ...own, uuid: 'fa1', parentUuid: null },
  ];
  const read = (all: readonly JsonObject[]) => parseJsonLines([bytes(all)], { file: 'file' }).records;
  const agents = [{ id: 'x1', lines: read(forked), meta: { toolUseId: 'toolu_1' } }];
  for (const added of [true, false]) {
    const done = reconcile(store, planClaudeCode({ name: id, lines: read(records), agents }));
    expect(done.map((one) => one.added > 0)).toEqual([added, added]);
    expect([...store.entries.read('agent-x1', { own: true, kind: 'message' })]).toHaveLength(1);
    expect(store.sessions.find('agent-x1')).toMatchObject({ parent: id, kind: 'subagent' });
    expect(store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0)).toBe(5 + 2 + 2);
  }
});

describe.each(['as it was', 'that went on here'])('a session %s, exported to two projects,', (how) => {
  /** The real transcript, and the exports of its session. */
  async function filesOf(): Promise<Readonly<Record<string, Transcript>>> {
    using store = openStore();
    const id = '11111111-2222-4333-8444-555555555555';
    const real = continued({ id, records: [] }, prompt('First.'), answer('One.'));
    const moved = real.records.map((record) => ({ ...record, cwd: '/srv/acme', gitBranch: 'main' }));
    imported(store, { id, records: moved });
    if (how !== 'as it was')
      store.entries.append(id, [user('Here.'), assistant('Two.', { usage: { input: 3, output: 5 } })]);
    return {
      real: { id, records: moved },
      here: await exported(store, id, undefined, '/srv/here'),
      there: await exported(store, id, undefined, '/srv/there'),
    };
  }

  test.each([
    ['here', 'there'],
    ['there', 'real', 'here'],
    ['real', 'here', 'there'],
    ['here', 'there', 'real'],
  ])('is stored once in a home that lost it, however often it is read: %s, %s, %s', async (...names) => {
    const files = await filesOf();
    using home = openStore(':memory:', { newId: countedIds('01JE') });
    const take = () => {
      for (const name of names) if (name !== undefined) imported(home, files[name] ?? never());
    };
    take();
    for (const text of ['First.', 'One.', ...(how === 'as it was' ? [] : ['Here.', 'Two.'])]) {
      const having = stored(home).filter((one) => one.includes('"role"') && one.includes(`"${text}"`));
      expect([text, having.length]).toEqual([text, 1]);
    }
    const output = home.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
    expect(output).toBe(how === 'as it was' ? 2 : 2 + 5);
    // Where it was said is not where it continues.
    const places = [...home.entries.read(files.here?.id ?? '', { kind: 'message' })].map(
      ({ meta }) => meta.place,
    );
    expect(places.slice(0, 2)).toEqual(
      places.slice(0, 2).map(() => ({ cwd: '/srv/acme', git: { branch: 'main' } })),
    );
    const all = stored(home);
    take();
    expect(stored(home)).toEqual(all);
  });
});

test.each(['as it was', 'that went on here'])(
  'an export of a session %s, without its secret, and the real transcript are stored once in a home that lost it',
  async (how) => {
    const id = '11111111-2222-4333-8444-555555555555';
    const key = tokenShapes.find(([name]) => name === 'aws')?.[1];
    const real = continued({ id, records: [] }, prompt(`First. ${key}`), answer('One.'), prompt('Second.'));
    using store = openStore();
    imported(store, real);
    if (how !== 'as it was') store.entries.append(id, [assistant('Here.'), user('There.')]);
    const given = await exported(store, id);
    for (const files of [
      [given, real],
      [real, given],
    ]) {
      using home = openStore(':memory:', { newId: countedIds('01JE') });
      const take = () => {
        for (const file of files) imported(home, file, { clean: cleanerFor() ?? never() });
      };
      take();
      const all = stored(home);
      for (const text of ['First.', 'One.', 'Second.'])
        expect([text, all.filter((one) => one.includes(`"text":"${text}`)).length]).toEqual([text, 1]);
      take();
      expect(stored(home)).toEqual(all);
    }
  },
);

describe('an export of a continuation, in a home that has the session which was exported first alone,', () => {
  /** A home with that session; what follows has other ids in each home. */
  function homeOf(prefix: string): SqliteTapeStore {
    const [first, later] = [countedIds(), countedIds(prefix)];
    let isBegun = false;
    const store = openStore(':memory:', { newId: () => (isBegun ? later() : first()) });
    store.sessions.open('main');
    store.entries.append('main', [user('First.'), assistant('One.', { usage: { input: 3, output: 5 } })]);
    isBegun = true;
    return store;
  }

  /** What Claude Code made of an export there, and of an export of that. */
  async function madeThere() {
    using there = homeOf('01JE');
    const first = continued(await exported(there, 'main'), prompt('Two?'), answer('Two.'));
    imported(there, first);
    const given = await exported(there, first.id);
    return { first, given, second: continued(given, prompt('Three?'), answer('Three.')) };
  }

  test.each<[string, ('first' | 'given' | 'second')[]]>([
    ['alone', ['given']],
    ['once it went on', ['second']],
    ['behind the continuation itself', ['first', 'second']],
    ['before the continuation itself', ['second', 'first']],
    ['in pieces', ['given', 'second', 'first']],
  ])('is a fork of that, and counts nothing again: %s', async (_, names) => {
    const made = await madeThere();
    using store = homeOf('01JF');
    for (const name of names) imported(store, made[name]);
    const answers = names.includes('second') ? 2 : 1;
    const output = store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
    expect(output).toBe(5 + 2 * answers);
    for (const text of ['First.', 'One.', 'Two?', 'Two.'])
      expect([text, stored(store).filter((one) => one.includes(`"${text}"`)).length]).toEqual([text, 1]);
    const before = stored(store);
    for (const name of names) expect(imported(store, made[name])).toMatchObject([{ added: 0 }]);
    expect(stored(store)).toEqual(before);
    expect([...store.verify()]).toEqual([]);
  });

  test('stays one when the continuation comes from there', async () => {
    const { given, second } = await madeThere();
    using store = homeOf('01JF');
    imported(store, given);
    // The session that was exported is here, too, by now.
    const found = given.records.find(({ tapedeck }) => isObject(tapedeck))?.tapedeck;
    const id = isObject(found) ? String(found.session) : '';
    using later = openStore(':memory:', { newId: () => id });
    later.sessions.open('exported');
    const pieces = wrapStore(store, ({ method, args, act }) =>
      method === 'sessions.find' && args[0] === id ? later.sessions.find(id) : act(),
    ) as SqliteTapeStore;
    expect(imported(pieces, second)).toMatchObject([{ session: given.id, added: 2 }]);
    expect(store.sessions.find(given.id)?.parent).toBe('main');
  });
});

test('an id that is no uuid names no file', async () => {
  using store = openStore();
  imported(store, continued({ id: 'demo', records: [] }, prompt('First.'), answer('One.')));
  const [{ session } = { session: '' }] = store.sessions.list();
  const given = await exported(store, session);
  expect(given.id).toMatch(/^[0-9a-f]{8}-/);
  expect(imported(store, given)).toMatchObject([{ session, added: 0 }]);
});

test('a compaction there keeps entries of the tape', async () => {
  using store = family();
  const given = await exported(store, 'main');
  const [kept] = given.records.filter(({ message }) => JSON.stringify(message ?? '').includes('Behind it.'));
  const after = continued(given, prompt('Go on.'), answer('On.'));
  const uuids = after.records
    .slice(after.records.indexOf(kept ?? {}))
    .flatMap(({ parentUuid, uuid }) => (parentUuid === undefined ? [] : [String(uuid)]));
  const boundary = {
    type: 'system',
    subtype: 'compact_boundary',
    parentUuid: null,
    compactMetadata: { trigger: 'manual', preTokens: 5, preservedMessages: { anchorUuid: 'x', uuids } },
  };
  const summary = { ...prompt('All of it.'), isCompactSummary: true };
  const compacted = continued(after, boundary, summary, prompt('Next.'), answer('Last.'));
  imported(store, compacted);
  expect(JSON.stringify(seen(store, compacted.id))).toMatch(
    /All of it\..*Behind it\..*Yes\..*Go on\..*On\..*Next\..*Last\./,
  );
  expect(JSON.stringify(seen(store, compacted.id))).not.toContain('All is well.');
});

test.each([
  ['what was said there', 1],
  ['what was exported', 0],
])(
  'a copy that begins at a compaction that kept %s is a fork behind it, and stores nothing again',
  async (_, said) => {
    using store = family();
    const given = await exported(store, 'main');
    const there = said === 0 ? given : continued(given, prompt('Go on.'), answer('On.'));
    const last = there.records.findLast(({ message }) => message !== undefined) ?? {};
    const kept = last.uuid ?? null;
    const preservedSegment = { headUuid: kept, tailUuid: kept, anchorUuid: 'sum' };
    const boundary = {
      type: 'system',
      subtype: 'compact_boundary',
      parentUuid: null,
      logicalParentUuid: kept,
    };
    const compacted = continued(
      there,
      { ...boundary, compactMetadata: { trigger: 'manual', preTokens: 5, preservedSegment } },
      { ...prompt('All of it.'), isCompactSummary: true },
      prompt('Next.'),
      answer('Last.'),
    );
    imported(store, compacted);
    const id = '22222222-2222-4333-8444-555555555555';
    const [head, sum, ...rest] = compacted.records.slice(-4);
    const ofCopy = (record: JsonObject, parentUuid: unknown): JsonObject => ({
      ...record,
      sessionId: id,
      parentUuid: String(parentUuid),
      ...(record.type === 'assistant' && { requestSessionId: there.id }),
    });
    const copied = [
      { ...head, sessionId: id },
      ofCopy(sum ?? {}, head?.uuid),
      ofCopy(last, sum?.uuid),
      ...rest.map((record, i) => ofCopy(record, i === 0 ? kept : rest[i - 1]?.uuid)),
    ];
    const copy = continued({ id, records: copied }, prompt('And fork.'), answer('Forked.'));
    const texts = ['First.', 'Yes.', ...['Go on.', 'On.'].slice(2 - 2 * said), 'Next.', 'Last.'];
    const isOnce = () => {
      for (const text of [...texts, 'And fork.', 'Forked.'])
        expect(
          stored(store).filter((one) => one.includes(`"${text}"`)),
          text,
        ).toHaveLength(1);
      expect([...store.verify()]).toEqual([]);
    };
    const shown = [...(seen(store, there.id) as object[]), { role: 'user' }, { role: 'assistant' }];
    imported(store, copy);
    isOnce();
    expect(store.sessions.find(id)?.parent).toBe(there.id);
    expect(seen(store, id)).toMatchObject(shown);
    for (const one of [copy, compacted, copy])
      expect(imported(store, one).every(({ added }) => added === 0)).toBe(true);
    const grown = continued(copy, prompt('More.'), answer('More it is.'));
    expect(imported(store, grown)).toMatchObject([{ session: id, added: 2 }]);
    isOnce();
    expect(seen(store, id)).toMatchObject([...shown, { role: 'user' }, { role: 'assistant' }]);
  },
);

test('a prompt right behind what a compaction kept is behind its summary, though it names what was kept', async () => {
  using store = openStore();
  store.sessions.open('main');
  const append = (...drafts: readonly Draft[]) => store.entries.append('main', [...drafts]);
  append(user('First.'), assistant('One.'));
  const { from: kept } = append(user('Kept prompt.'), assistant('Kept answer.'));
  append(compaction({ summary: 'All is well.', range: [2, kept - 1] }, { keepFrom: kept }));
  const given = await exported(store, 'main');
  const last = given.records.find(({ message }) => JSON.stringify(message ?? '').includes('Kept answer.'));
  const next = { ...prompt('Go on.'), parentUuid: last?.uuid ?? null };
  const after = continued(given, next, answer('On.'));
  const shown = /All is well\..*Kept prompt\..*Kept answer\..*Go on\..*On\./;
  for (const home of [store, openStore()]) {
    imported(home, after);
    const there = JSON.stringify(seen(home, after.id));
    expect(there).toMatch(shown);
    expect(there).not.toContain('First.');
  }
  expect(store.sessions.find(after.id)?.parent).toBe('main');
  expect(stored(store).filter((text) => text.includes('"Kept answer."'))).toHaveLength(1);
  expect(imported(store, after).every(({ added }) => added === 0)).toBe(true);
});

test('what the session went through since has no part in what returns: a rewind, or a call that was open', async () => {
  using store = family();
  const given = await exported(store, 'main');
  const before = seen(store, 'main') as object[];
  store.history.rewind('main', 5);
  const back = continued(given, prompt('Go on.'), answer('On.'));
  imported(store, back);
  expect(seen(store, back.id)).toMatchObject([...before, { role: 'user' }, { role: 'assistant' }]);

  const call = { toolCallId: 'open', toolName: 'look' };
  store.sessions.open('cut');
  store.entries.append('cut', [user('Look.'), assistant([toolCall('open', 'look', {})])]);
  store.entries.append('cut', [user('Later.'), assistant('Yes.')]);
  const shown = seen(store, 'cut') as object[];
  const later = continued(await exported(store, 'cut'), prompt('Go on.'), answer('On.'));
  store.entries.append('cut', [toolResult(call, 'late')]);
  imported(store, later);
  expect(seen(store, later.id)).toMatchObject([...shown, { role: 'user' }, { role: 'assistant' }]);
  expect(imported(store, later)).toMatchObject([{ added: 0 }]);
  expect([...store.verify()]).toEqual([]);
});

test.each(['the copy first', 'the copy last'])(
  'a fork that Claude Code made of it is a fork here, %s',
  async (order) => {
    using store = family();
    const there = continued(await exported(store, 'main'), prompt('Go on.'), answer('On.'));
    const id = '22222222-2222-4333-8444-555555555555';
    const copied = there.records
      .filter((record) => 'parentUuid' in record)
      .map((record) => ({
        ...record,
        sessionId: id,
        ...(record.type === 'assistant' && { requestSessionId: there.id }),
      }));
    const copy = continued({ id, records: copied }, prompt('And fork.'), answer('Forked.'));
    const both = order === 'the copy first' ? [copy, there] : [there, copy];
    for (const one of both) imported(store, one);
    for (const one of both) imported(store, one);
    expect(treeParentOf(store.sessions.find(there.id) ?? never()).parent).toBe('main');
    expect(treeParentOf(store.sessions.find(id) ?? never()).parent).toBe(there.id);
    for (const text of ['First.', 'Go on.', 'On.', 'And fork.', 'Forked.'])
      expect(
        stored(store).filter((one) => one.includes(`"${text}"`)),
        text,
      ).toHaveLength(1);
    expect(seen(store, id)).toMatchObject([
      ...(seen(store, there.id) as object[]),
      { role: 'user' },
      { role: 'assistant' },
    ]);
    expect([...store.verify()]).toEqual([]);
  },
);

describe('a prompt that Claude Code rewound to, in what it was given', () => {
  const usage = { input: 3, output: 2 };
  const output = (store: SqliteTapeStore) =>
    store.sessions.calls().reduce((sum, { usage: one }) => sum + one.output, 0);
  const calling = (...ids: readonly string[]) => ({
    type: 'assistant',
    message: {
      ...answer('calls').message,
      content: ids.map((id) => ({ type: 'tool_use', id, name: 'look', input: {} })),
    },
  });
  const returning = (id: string) => ({
    type: 'user',
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: id }] },
  });
  const endingAt = ({ records }: Transcript) => ({
    ...{ type: 'last-prompt', leafUuid: records.findLast(({ uuid }) => uuid !== undefined)?.uuid ?? null },
    sessionId: records[0]?.sessionId ?? null,
  });
  const ended = (transcript: Transcript): Transcript => ({
    ...transcript,
    records: [...transcript.records, endingAt(transcript)],
  });
  /** Only what is shown: what was replaced by a rewind is hidden. */
  const shownOnce = (store: SqliteTapeStore, text: string) =>
    store.sessions
      .list()
      .flatMap(({ id }) => [...store.views.entries(id, { policy: 'full' })])
      .filter(({ inherited, payload }) => !inherited && JSON.stringify(payload).includes(`"text":"${text}"`));

  async function begun() {
    const store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('First.'), assistant('One.', { usage })]);
    store.entries.append('main', [user('Second.'), assistant('Two.', { usage })]);
    const given = await exported(store, 'main');
    const [, one] = given.records.filter(({ message }) => message !== undefined);
    const again = { ...prompt('Anew.'), parentUuid: one?.uuid ?? null };
    return { store, given, again };
  }

  test('leads to a fork there, and is stored and counted once, however often the file is read meanwhile', async () => {
    const { store, given, again } = await begun();
    const whole = ended(
      continued(given, again, calling('a', 'b'), returning('a'), returning('b'), answer('End.')),
    );
    for (let n = given.records.length; n <= whole.records.length; n += 1)
      imported(store, { ...whole, records: whole.records.slice(0, n) });
    expect(JSON.stringify(seen(store, given.id))).toMatch(/First\..*One\..*Anew\..*End\./);
    expect(store.sessions.list().map(({ session, parent }) => [session, parent])).toEqual([
      [given.id, 'main'],
      ['main', undefined],
    ]);
    expect(output(store)).toBe(2 + 2 + 2 + 2);
    expect(shownOnce(store, 'Anew.')).toHaveLength(1);
    expect(imported(store, whole)).toMatchObject([{ added: 0 }, { added: 0 }]);
  });

  test('leaves nothing to store of the file as it was exported, which another folder may still have', async () => {
    const { store, given, again } = await begun();
    imported(store, ended(continued(given, again, answer('End.'))));
    const before = stored(store);
    expect(imported(store, given)).toMatchObject([{ created: false, added: 0 }]);
    expect(stored(store)).toEqual(before);
    // What another program went on with from there is a fork behind all of it.
    const other = ended(continued(given, prompt('Third.'), answer('Three.')));
    const [main] = imported(store, other);
    expect(JSON.stringify(seen(store, main?.session ?? ''))).toMatch(/Two\..*Third\..*Three\./);
    for (const text of ['First.', 'Two.', 'Third.', 'Three.', 'Anew.', 'End.'])
      expect(shownOnce(store, text), text).toHaveLength(1);
    expect(imported(store, other).map(({ added }) => added)).not.toContain(1);
    expect([...store.verify()]).toEqual([]);
  });

  test('leaves the rest of it where it is, if a reminder is sent before all of the rest', async () => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [user('First.'), user('Second.'), assistant('Two.', { usage })]);
    const given = await exported(store, 'main');
    const [first] = given.records;
    const again = { ...prompt('Anew.'), parentUuid: first?.uuid ?? null };
    const rendered = [{ role: 'user', content: 'It is late.' }];
    const reminder = { type: 'attachment', attachment: { type: 'date' }, rendered };
    const noted = continued(given, { type: 'mode', mode: 'normal' });
    const asked = ended(continued(noted, again, reminder));
    const whole = ended(continued(asked, answer('End.')));
    for (let n = given.records.length; n <= whole.records.length; n += 1)
      imported(store, { ...whole, records: whole.records.slice(0, n) });
    for (const text of ['Second.', 'Two.', 'Anew.', 'End.'])
      expect(shownOnce(store, text), text).toHaveLength(1);
    expect(output(store)).toBe(2 + 2);
    expect([...store.verify()]).toEqual([]);
  });

  test('leaves what had been said there before where it is', async () => {
    const { store, given, again } = await begun();
    const before = ended(continued(given, prompt('Third.'), answer('Three.')));
    imported(store, before);
    const whole = ended(continued(before, again, answer('End.')));
    const [main] = imported(store, whole);
    expect(JSON.stringify(seen(store, main?.session ?? ''))).toMatch(/One\..*Anew\..*End\./);
    expect(JSON.stringify(seen(store, given.id))).toMatch(/Two\..*Third\..*Three\./);
    for (const text of ['First.', 'Two.', 'Third.', 'Three.', 'Anew.', 'End.'])
      expect(shownOnce(store, text), text).toHaveLength(1);
    expect(output(store)).toBe(2 + 2 + 2 + 2);
    expect([...store.verify()]).toEqual([]);
  });
});

test('an answer with a call that has no result keeps what is said before it, whatever Claude Code notes meanwhile', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('First.'), assistant('One.')]);
  store.entries.append('main', [assistant([toolCall('open', 'look', {})]), user('Then?')]);
  store.entries.append('main', [assistant('Well.')]);
  const given = await exported(store, 'main');
  const before = seen(store, 'main') as object[];
  const noted = continued(given, { type: 'mode', mode: 'normal' });
  const later = continued(noted, prompt('Go on.'), answer('On.'));
  for (const one of [noted, later]) imported(store, one);
  expect(seen(store, given.id)).toMatchObject([...before, { role: 'user' }, { role: 'assistant' }]);
  expect(imported(store, later)).toMatchObject([{ added: 0 }]);
  expect([...store.verify()]).toEqual([]);
});

test('a file that lost its beginning, of a fork with nothing of its parent, shows what it has left', async () => {
  using store = family();
  store.lineage.fork('main', { name: 'fresh', inherit: 'nothing', intention: { nextSteps: 'Test it.' } });
  store.entries.append('fresh', [assistant('Tested.'), user('Again.'), assistant('Again it is.')]);
  const once = continued(await exported(store, 'fresh'), prompt('Go on.'), answer('On.'));
  imported(store, once);
  const left = { ...once, records: once.records.slice(2) };
  const [made] = imported(store, left);
  expect(made?.refused).toBeUndefined();
  const shown = JSON.stringify(seen(store, made?.session ?? ''));
  expect(shown).toMatch(/Again\..*Again it is\..*Go on\..*On\./);
  expect(shown).not.toContain('Tested.');
  expect(imported(store, left)).toMatchObject([{ added: 0 }]);
  expect([...store.verify()]).toEqual([]);
});

test('an open call that the session does not show is no place to fork it behind', async () => {
  using store = openStore();
  store.sessions.open('main');
  const { to } = store.entries.append('main', [
    user('First.'),
    assistant('One.'),
    user('Look.'),
    assistant([toolCall('open', 'look', {})]),
  ]);
  store.entries.append('main', [omit([to]), user('Then?'), assistant('Well.')]);
  const given = await exported(store, 'main');
  const later = continued(given, prompt('Go on.'), answer('On.'));
  imported(store, later);
  expect(JSON.stringify(seen(store, given.id))).toMatch(
    /First\..*One\..*Look\..*Then\?.*Well\..*Go on\..*On\./,
  );
  expect(imported(store, later)).toMatchObject([{ session: given.id, added: 0 }]);
  expect(store.sessions.list()).toHaveLength(2);
});

test('the task of a fork stays in view where Claude Code goes on behind a compaction of it', async () => {
  using store = family();
  const { head: end = 0 } = store.sessions.find('child') ?? {};
  store.entries.append('child', [compaction({ summary: 'Half is done.', range: [2, end] })]);
  store.entries.append('child', [user('And the rest?'), assistant('Soon.')]);
  const given = await exported(store, 'child');
  expect(imported(store, given)).toMatchObject([{ session: 'child', added: 0 }]);
  imported(store, continued(given, prompt('Go on.'), answer('On.')));
  for (const session of ['child', given.id])
    expect(JSON.stringify(seen(store, session))).toMatch(/Half is done.*Test it.*And the rest/);
  expect(store.sessions.find(given.id)?.parent).toBe('child');
});

test.each([0, 1, 2])('what was changed in an exported record is on a tape: message %i', async (n) => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('First.'), assistant('Found.'), user('Go on.')]);
  const { id, records } = await exported(store, 'main');
  const changed = records.filter(({ message }) => message !== undefined)[n];
  const edited = { role: n === 1 ? 'assistant' : 'user', content: 'Changed.' };
  const given = records.map((one) => (one === changed ? { ...one, message: edited } : one));
  const [made] = imported(store, { id, records: given });
  const said = ['First.', 'Found.', 'Go on.'].with(n, 'Changed.');
  expect(JSON.stringify(seen(store, made?.session ?? '')).match(/(?<="text":")[^"]+/g)).toEqual(said);
  expect(store.sessions.find(id)?.parent).toBe(n === 0 ? undefined : 'main');
  expect([...store.verify()]).toEqual([]);
});

describe('a transcript that has an export in parts', () => {
  /** Messages that are said one after another, with a call, and their records, with what the program went on with. */
  async function begun(more: readonly JsonObject[] = [prompt('Go on.'), answer('On.')]) {
    const store = openStore();
    store.sessions.open('main');
    const call = { toolCallId: 't', toolName: 'look' };
    const usage = { input: 3, output: 5 };
    store.entries.append('main', [user('First.'), assistant('One.', { usage }), user('Second.')]);
    store.entries.append('main', [
      assistant([toolCall('t', 'look', {})], { usage }),
      toolResult(call, 'seen'),
    ]);
    store.entries.append('main', [
      assistant('Two.', { usage }),
      user('Third.'),
      assistant('Three.', { usage }),
    ]);
    const transcript = await exported(store, 'main');
    return { store, given: continued(transcript, ...more), records: transcript.records };
  }

  const textsOf = (store: SqliteTapeStore, session: string) =>
    JSON.stringify(seen(store, session))
      .match(/(?<="(?:text|value)":")[^"]+/g)
      ?.filter((text) => !/ is not shown\.$|^Go on\.$/.test(text));
  const output = (store: SqliteTapeStore) =>
    store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);
  const says = (text: string) => (record: JsonObject) => JSON.stringify(record.message ?? '').includes(text);
  const without = ({ id, records }: Transcript, left: (record: JsonObject, i: number) => boolean) => ({
    id,
    records: records.filter((one, i) => !left(one, i)),
  });

  /** The records that say something, each linked to the one before it. */
  const linked = (all: readonly JsonObject[]): readonly JsonObject[] => {
    const spoken = all.filter(({ message }) => message !== undefined);
    return spoken.map((one, i) => ({ ...one, parentUuid: spoken[i - 1]?.uuid ?? null }));
  };

  /** The view is that of a home that does not have the exported session, after each record and again. */
  function showsItself(store: SqliteTapeStore, transcript: Transcript): void {
    const before = output(store);
    for (let n = 1; n <= transcript.records.length; n += 1)
      imported(store, { ...transcript, records: transcript.records.slice(0, n) });
    const [made] = imported(store, transcript);
    expect(made).toMatchObject({ added: 0, rewound: false });
    using other = openStore();
    const [there] = imported(other, transcript);
    expect(textsOf(store, made?.session ?? '')).toEqual(textsOf(other, there?.session ?? ''));
    expect(output(store)).toBe(before + 2);
    expect([...store.verify()]).toEqual([]);
  }

  test('the last record alone begins a session that shows no more, below the one that was exported', async () => {
    const { store, given, records } = await begun();
    const last = records.findLastIndex(says('Three.'));
    const transcript = without(given, (_, i) => i < last);
    showsItself(store, transcript);
    expect(textsOf(store, given.id)).toEqual(['Three.', 'On.']);
    expect(store.sessions.find(given.id)?.link).toMatchObject({
      parent: 'main',
      type: 'copy',
      derived: true,
    });
    expect(textsOf(store, 'main')).toEqual(['First.', 'One.', 'Second.', 'seen', 'Two.', 'Third.', 'Three.']);
  });

  test.each(['Second.', 'One.', 'seen', 'First.'])('a hole is not filled: %s', async (text) => {
    const { store, given } = await begun();
    const transcript = without(given, says(text));
    showsItself(store, transcript);
    // What precedes the hole is not stored again.
    expect(stored(store).filter((one) => one.includes('First.'))).toHaveLength(1);
    // Neither is it where the program links what is left, and no record says that one is missing.
    const second = await begun();
    const left = without(second.given, says(text));
    showsItself(second.store, { id: left.id, records: linked(left.records) });
  });

  test('records in another order are those of the export, where their links say so', async () => {
    const { store, given, records } = await begun();
    const mixedOf = (all: readonly JsonObject[]) => [
      ...all.slice(0, records.length).reverse(),
      ...all.slice(records.length),
    ];
    const before = stored(store).filter((one) => one.includes('"role"')).length;
    imported(store, { ...given, records: mixedOf(given.records) });
    expect(stored(store).filter((one) => one.includes('"role"'))).toHaveLength(before + 2);
    expect(store.sessions.find(given.id)?.parent).toBe('main');
    const piecemeal = await begun();
    showsItself(piecemeal.store, { id: piecemeal.given.id, records: mixedOf(piecemeal.given.records) });
  });

  test('those of two exports show both', async () => {
    const { store, given } = await begun([]);
    store.sessions.open('other');
    store.entries.append('other', [user('Elsewhere.'), assistant('There.')]);
    const { records } = await exported(store, 'other');
    const both = continued(
      { id: given.id, records: [...given.records, ...records] },
      prompt('Go on.'),
      answer('On.'),
    );
    showsItself(store, { id: given.id, records: linked(both.records) });
    expect(textsOf(store, given.id)).toContain('There.');
  });

  test('what the session leaves out stays out behind its last message', async () => {
    const { store } = await begun();
    const { seq = 0 } =
      [...store.entries.read('main', { kind: 'message' })].find(({ payload }) =>
        JSON.stringify(payload).includes('Second.'),
      ) ?? {};
    store.entries.append('main', [omit([seq])]);
    const given = continued(await exported(store, 'main'), prompt('Go on.'), answer('On.'));
    imported(store, given);
    expect(textsOf(store, given.id)).toEqual([
      ...['First.', 'One.', 'seen', 'Two.', 'Third.', 'Three.', 'On.'],
    ]);
    expect(stored(store).filter((one) => one.includes('First.'))).toHaveLength(1);
  });

  test('a part of a session that keeps its id there leaves that as it is', async () => {
    using store = openStore();
    const id = '11111111-2222-4333-8444-555555555555';
    imported(
      store,
      continued({ id, records: [] }, prompt('First.'), answer('One.'), prompt('Second.'), answer('Two.')),
    );
    const same = await exported(store, id);
    expect(same.id).toBe(id);
    const last = same.records.findLastIndex(says('Two.'));
    const part = continued({ id, records: same.records.slice(last) }, prompt('Go on.'), answer('On.'));
    const [made] = imported(store, part);
    expect(textsOf(store, made?.session ?? '')).toEqual(['Two.', 'On.']);
    expect(textsOf(store, id)).toEqual(['First.', 'One.', 'Second.', 'Two.']);
  });
});

test('a message of which nothing is left for Claude Code, and a beginning that stands behind what it begins, are no difference', async () => {
  const store = openStore();
  store.sessions.open('main');
  const thought = { type: 'reasoning', text: 'Sealed elsewhere.' } as const;
  store.entries.append('main', [user('First.'), assistant('Found.')]);
  const { from } = store.entries.append('main', [anchor('task', { goal: 'Ship it.' }), user('Second.')]);
  store.entries.append('main', [{ ...assistant([thought]), meta: { provider: 'openai.responses' } }]);
  store.entries.append('main', [user('Third.'), assistant('Yes.')]);
  store.lineage.fork('main', { name: 'window', inherit: { since: from }, intention: { nextSteps: 'Go.' } });
  store.entries.append('window', [user('Fourth.')]);
  for (const session of ['main', 'window']) {
    const before = store.sessions.list({ all: true }).map(({ id, head }) => [id, head]);
    const [done] = imported(store, await exported(store, session));
    expect(done).toMatchObject({ session, added: 0 });
    expect(store.sessions.list({ all: true }).map(({ id, head }) => [id, head])).toEqual(before);
  }
  // What is said of the thought stays where Claude Code goes on.
  const [more] = imported(store, continued(await exported(store, 'window'), prompt('Fifth.')));
  expect(more).toMatchObject({ created: true });
  expect(JSON.stringify(seen(store, more?.session ?? ''))).toMatch(/Ship it.*Second.*Third.*Fourth.*Fifth/);
});

test.each([
  ['lacks its beginning', (records: readonly JsonObject[]) => records.slice(1)],
  [
    'has another beginning',
    ([first = {}, ...others]: readonly JsonObject[]) => [
      { ...first, message: { role: 'user', content: 'changed' } },
      ...others,
    ],
  ],
])('what was erased since an export does not come back from it where it %s', async (_, change) => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [
    user('Where?'),
    assistant('An aardvark.'),
    user('And then?'),
    assistant('Home.'),
  ]);
  const file = await exported(store, 'main');
  store.entries.redact('main', 3, 'private');
  const { id, records } = continued(file, prompt('typed there'));
  for (const _ of ['at first', 'again']) imported(store, { id, records: change(records) });
  const having = (text: string) => stored(store).filter((one) => one.includes(text)).length;
  expect(['aardvark', 'typed there', 'Home.'].map(having)).toEqual([0, 1, 2]);
});

test('an export that was continued is a session of its own in a realm that has not the exported one', async () => {
  using store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('hello'), assistant('hi')]);
  const file = continued(await exported(store, 'main'), prompt('go on'), answer('gone on'));
  using lacking = openStore();
  imported(lacking, file);
  const other = store.inRealm('other');
  expect(imported(other, file)).toMatchObject([{ session: file.id, created: true }]);
  const messagesIn = (one: SqliteTapeStore) => view(one.views.entries(file.id)).messages;
  expect(messagesIn(other)).toEqual(messagesIn(lacking));
  expect(imported(other, file)).toMatchObject([{ added: 0 }]);
  // In its own realm it is a fork.
  imported(store, file);
  expect(treeParentOf(store.sessions.find(file.id) ?? never()).parent).toBe('main');
  expect([...store.verify()]).toEqual([]);
});
