import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Embedded, LivePage } from '@tapedeck/cli/internal';
import {
  anchor,
  assistant,
  compaction,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { embeddedData } from '../../packages/cli/ui/src/data/embedded.ts';
import { pageOn } from '../support/page.ts';
import { rawDb } from '../support/raw-db.ts';
import { seeded } from '../support/seeded.ts';
import { memoryHome, type TempHome } from '../support/temp-home.ts';

const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
const token = `ghp_${'a1B2'.repeat(9)}`;

/** Asks, calls a tool, and answers with the manifest of what a model was given. */
function turn(store: SqliteTapeStore, session: string, said: string): void {
  store.entries.append(session, [user(said)]);
  const head = store.sessions.find(session)?.head ?? 0;
  const id = `c${head}`;
  const manifest = JSON.parse(JSON.stringify(view(store.views.entries(session)).manifest()));
  const meta = { model: 'a/b', usage, view: manifest };
  store.entries.append(session, [assistant([toolCall(id, 'read', { path: `${said}.ts` })], meta)]);
  store.entries.append(session, [
    toolResult({ toolCallId: id, toolName: 'read' }, `What ${said} has.`),
    assistant(`Answer to ${said}.`, { model: 'a/b', usage }),
  ]);
}

/** A family with rewinds before and behind a fork, merges, a compaction, and a session that is deleted. */
function family(home: TempHome): void {
  using store = home.open();
  store.sessions.open('root');
  turn(store, 'root', 'one');
  const cut = store.sessions.find('root')?.head ?? 0;
  turn(store, 'root', 'two');
  store.history.rewind('root', cut);
  store.entries.append('root', [anchor('task', { goal: 'x' })]);
  store.lineage.fork('root', { name: 'main' });
  store.lineage.fork('root', { name: 'sibling' });
  turn(store, 'sibling', 'aside');
  turn(store, 'main', 'three');
  store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Check it.' } });
  turn(store, 'kid', 'four');
  store.lineage.merge('kid');
  const { head = 0 } = store.sessions.find('main') ?? {};
  store.entries.append('main', [compaction({ summary: 'So far.', range: [1, head] })]);
  turn(store, 'main', 'five');
  store.lineage.fork('main', { name: 'gone' });
  turn(store, 'gone', 'six');
  store.lineage.fork('gone', { name: 'left' });
  store.sessions.update('gone', { lifecycle: 'destroyed' });
  turn(store, 'left', 'seven');
}

/** Rewinds inside of what later ones undo: what was forked in between shows the former, and its parent the latter. */
function nestedRewinds(store: SqliteTapeStore): void {
  const headOf = (session: string) => store.sessions.find(session)?.head ?? 0;
  store.sessions.open('root');
  turn(store, 'root', 'seven');
  const outer = headOf('root');
  turn(store, 'root', 'eight');
  const inner = headOf('root');
  turn(store, 'root', 'nine');
  store.history.rewind('root', inner);
  turn(store, 'root', 'ten');
  store.lineage.fork('root', { name: 'between' });
  turn(store, 'between', 'eleven');
  store.lineage.fork('between', { name: 'deep' });
  turn(store, 'deep', 'twelve');
  store.history.rewind('root', outer);
  turn(store, 'root', 'thirteen');
  store.history.rewind('between', outer - 1);
  turn(store, 'between', 'fourteen');
}

async function exported(home: TempHome, ...args: string[]): Promise<{ html: string; data: Embedded }> {
  const file = home.file(`${Math.random()}.html`);
  const { code, stderr } = await home.here(['export', ...args, '--format', 'html', '-o', file]);
  if (code !== 0) throw new Error(stderr);
  const html = readFileSync(file, 'utf8');
  const [, data = ''] = /id="tapedeck-data">([^<]*)</.exec(html) ?? [];
  return { html, data: JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString()) as Embedded };
}

/** Compares a timeline in a file with that of a server. */
async function expectSame(data: Embedded, page: LivePage, session: string): Promise<void> {
  const { head } = await page.session({ session });
  for (const hidden of [false, true])
    for (const [from, to] of [
      [1, 200],
      [3, 9],
    ] as const) {
      const range = { session, from, to: Math.min(to, head), hidden };
      const { items } = await page.timeline(range);
      const shown = items.map(({ seq, parts, hiddenBy, hides }) =>
        expect.objectContaining({ seq, parts, ...(hiddenBy && { hiddenBy }), ...(hides && { hides }) }),
      );
      expect((await embeddedData(data).timeline(range)).items, `${session} ${from}-${to} ${hidden}`).toEqual(
        shown,
      );
    }
}

test('a file answers what a server answers, of the sessions that it has', async () => {
  using home = memoryHome();
  family(home);
  const { data } = await exported(home, 'root', '--tree');
  const file = embeddedData(data);
  using store = home.open();
  const page = pageOn(store);
  expect(data.sessions.map(({ session }) => session).sort()).toEqual([
    'kid',
    'left',
    'main',
    'root',
    'sibling',
  ]);
  for (const query of [{}, { find: 'four' }, { state: 'merged' }, { sort: 'name' }] as const)
    expect((await file.sessions(query)).rows).toEqual((await page.sessions(query)).rows);
  const rows = (await page.lineage({ session: 'root', all: true })).rows;
  expect((await file.lineage({ session: 'root' })).rows.map(({ label }) => label).sort()).toEqual(
    rows.map(({ label }) => label).sort(),
  );
  for (const session of ['root', 'main', 'kid', 'sibling', 'left']) {
    const info = await page.session({ session });
    expect(await file.session({ session })).toEqual(info);
    await expectSame(data, page, session);
    expect((await file.usage({ session })).total).toEqual((await page.usage({ session })).total);
  }
  for (const item of (await page.timeline({ session: 'main', from: 1, to: 200 })).items) {
    if (item.seen !== true) continue;
    const at = { session: item.owner, seq: item.seq };
    expect(await file.seen({ session: 'main', seq: item.seq })).toEqual(await page.seen(at));
  }
  expect(await file.parting({ a: 'main', b: 'kid' })).toEqual(await page.parting({ a: 'main', b: 'kid' }));
  const merge = data.tapes.main?.items.find(({ kind }) => kind === 'merge')?.seq ?? 0;
  expect(await file.trace({ session: 'main', seq: merge })).toContainEqual(
    expect.objectContaining({ session: 'kid', seq: 22 }),
  );
});

test('a file has what it leads to: traces, usage, and the sessions to compare', async () => {
  using home = memoryHome();
  family(home);
  const { data } = await exported(home, 'root', '--tree');
  const file = embeddedData(data);
  using store = home.open();
  const page = pageOn(store);
  const pages: Record<string, number> = { trace: 0, seen: 0 };
  for (const { session } of data.sessions) {
    const { head } = await file.session({ session });
    for (const { seq } of (await file.timeline({ session, from: 1, to: head })).items)
      for (const of of ['trace', 'seen'] as const) {
        const isThere = file.has({ page: of, session, seq });
        const answer = file[of]({ session, seq });
        if (isThere) expect(await answer).toBeDefined();
        else await expect(answer).rejects.toMatchObject({ code: 'NOT_IN_FILE' });
        pages[of] = (pages[of] ?? 0) + Number(isThere);
      }
    expect(file.has({ page: 'usage', session })).toBe(true);
  }
  expect(Math.min(...Object.values(pages))).toBeGreaterThan(3);
  // Where each message of a merged session went, also where another one inherits it.
  const { base, head } = await file.session({ session: 'kid' });
  const said = (await file.timeline({ session: 'kid', from: base + 1, to: head })).items.filter(
    ({ kind }) => kind === 'message',
  );
  for (const { seq } of said)
    expect(await file.trace({ session: 'kid', seq })).toEqual(await page.trace({ session: 'kid', seq }));
  const { answers, ...brief } = await page.parting({ a: 'main', b: 'sibling' });
  expect(answers).toBeDefined();
  for (const [a, b] of [
    ['main', 'sibling'],
    ['sibling', 'main'],
  ] as const)
    expect(file.has({ page: 'diff', a, b })).toBe(true);
  const { a, b } = await file.parting({ a: 'main', b: 'sibling' });
  expect([a, b].map(({ session }) => session).sort()).toEqual(['main', 'sibling']);
  expect(brief.common).toMatchObject({ session: 'root' });
  for (const [one, other] of [
    ['kid', 'sibling'],
    ['main', 'nix'],
  ] as const)
    expect(file.has({ page: 'diff', a: one, b: other })).toBe(false);
  expect(file.has({ page: 'usage', session: 'gone' })).toBe(false);
});

test('a file has what a check finds of each of its sessions, at its place, and nothing of others', async () => {
  using home = memoryHome();
  family(home);
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    const changed = (name: string, seq: string) =>
      db.run(
        `UPDATE entry SET v = 2 WHERE tape_id = (SELECT id FROM tape WHERE name = '${name}') AND seq = ${seq}`,
      );
    for (const name of ['root', 'main', 'kid', 'sibling'])
      changed(name, `(SELECT head_seq FROM tape WHERE name = '${name}')`);
    changed('root', '3');
  }
  const found = async (args: readonly string[], session?: string) => {
    const file = embeddedData((await exported(home, ...args)).data);
    const { findings } = await file.findings(session === undefined ? {} : { session });
    return findings
      .flatMap(({ code, session, seq }) => (code === 'row-changed' ? [`${session}@${seq}`] : []))
      .toSorted();
  };
  const inherited = ['kid@22', 'root@11', 'root@3'];
  expect(await found(['root', '--tree'])).toEqual(['kid@22', 'main@23', 'root@11', 'root@3', 'sibling@16']);
  expect(await found(['root', '--tree'], 'kid')).toEqual(inherited);
  expect(await found(['kid'])).toEqual(inherited);
  expect(await found(['kid', '--lineage'])).toEqual(['kid@22', 'main@23', 'root@11', 'root@3']);
});

test.each(['session', 'lineage', 'tree'])(
  'a file hides what its sessions hide, also by a rewind inside of another one: %s',
  async (scope) => {
    using home = memoryHome();
    {
      using store = home.open();
      nestedRewinds(store);
    }
    const named = scope === 'tree' ? 'root' : 'deep';
    const { data } = await exported(home, named, ...(scope === 'session' ? [] : [`--${scope}`]));
    using store = home.open();
    const page = pageOn(store);
    const whole = scope === 'session' ? ['deep'] : ['root', 'between', 'deep'];
    for (const session of whole) await expectSame(data, page, session);
  },
);

test('a file of one session has what that inherits, and of others neither entries nor names', async () => {
  using home = memoryHome();
  family(home);
  const { data } = await exported(home, 'main');
  expect(data.sessions.map(({ session }) => session)).toEqual(['main', 'root']);
  const text = JSON.stringify(data);
  expect(text).not.toMatch(/sibling|aside|gone|seven|four\.ts/);
  expect(text).toContain('What one has.');
  const { lineage } = (await exported(home, 'main', '--lineage')).data;
  expect(lineage.flatMap(({ session, shape }) => (shape === 'session' ? [session] : []))).toEqual([
    'root',
    'main',
  ]);
});

test('secrets are replaced before a text is cut, unless they are wanted', async () => {
  using home = memoryHome();
  {
    using store = home.open();
    store.sessions.open('main');
    const text = (chars: number) => `${'x '.repeat(chars / 2)}${token}`;
    store.entries.append('main', [
      user(`Use ${token}`),
      assistant(text(1_980)),
      assistant([toolCall('c', 'read', { token })]),
    ]);
    store.entries.append('main', [toolResult({ toolCallId: 'c', toolName: 'read' }, text(480))]);
  }
  const { data } = await exported(home, 'main');
  expect(JSON.stringify(data)).not.toMatch(/ghp_|a1B2/);
  expect(data.home.exported?.redacted).toBe(3);
  expect(data.sessions[0]?.about).toBe('Use [secret github]');
  expect(JSON.stringify((await exported(home, 'main', '--raw')).data)).toContain(token);
});

test('nor is half of one in a title, or in what was merged', async () => {
  using home = memoryHome();
  {
    using store = home.open();
    store.sessions.open('main', { title: `${'x '.repeat(95)}${token}` });
    for (const chars of [40, 60, 80, 100, 120, 160, 200, 240, 300, 400]) {
      const { session } = store.lineage.fork('main', { title: `${'y '.repeat(97)}${token}` });
      store.entries.append(session, [assistant(`${'z '.repeat(chars / 2 - 5)}${token}`)]);
      store.lineage.merge(session);
    }
  }
  const { data } = await exported(home, 'main', '--tree');
  expect(JSON.stringify(data)).not.toMatch(/ghp_|a1B2/);
});

test('nor is the name of a session, by which the page finds it', async () => {
  using home = memoryHome();
  {
    using store = home.open();
    store.sessions.open(token);
    turn(store, token, 'one');
    store.lineage.fork(token, { name: `${token}.kid` });
    turn(store, `${token}.kid`, 'two');
    store.lineage.merge(`${token}.kid`);
  }
  const { html, data } = await exported(home, token, '--tree');
  expect(html + JSON.stringify(data)).not.toMatch(/ghp_|a1B2/);
  const file = embeddedData(data);
  const names = data.sessions.map(({ session }) => session);
  expect(new Set(names).size).toBe(2);
  for (const session of names) {
    const { head, parent } = await file.session({ session });
    expect((await file.timeline({ session, from: 1, to: head })).items.length).toBeGreaterThan(3);
    expect((await file.usage({ session })).total.key).toBe(session);
    if (parent !== undefined) expect((await file.parting({ a: parent, b: session })).b.session).toBe(session);
  }
  for (const { session } of data.lineage) expect(names).toContain(session);
  expect((await exported(home, token, '--tree', '--raw')).data.tapes).toHaveProperty([token]);
});

test('a file does not say where its home was', async () => {
  using home = memoryHome();
  family(home);
  const { html, data } = await exported(home, 'root', '--tree', '--home', home.path);
  expect(JSON.stringify(data)).toContain('tape fork main@');
  expect(JSON.stringify(data) + html).not.toContain(home.path);
});

test('an entry that cannot be read is shown as damaged, on the page and in a file, and takes nothing else away', async () => {
  using home = memoryHome();
  family(home);
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    const of = (name: string) => `tape_id = (SELECT id FROM tape WHERE name = '${name}')`;
    // What several sessions inherit, the first message, and the last entry of one.
    for (const seq of ['2', '4', `(SELECT head_seq FROM tape WHERE name = 'root')`])
      db.run(`UPDATE entry SET payload = 'no JSON' WHERE ${of('root')} AND seq = ${seq}`);
  }
  const { data } = await exported(home, 'root', '--tree');
  using store = home.open();
  const page = pageOn(store);
  for (const session of ['root', 'main', 'kid', 'sibling']) {
    await expectSame(data, page, session);
    const { items } = await page.timeline({ session, from: 1, to: 200 });
    const damaged = items.filter(({ parts: [part] }) => part?.type === 'gone' && part.why === 'damaged');
    expect(damaged).toMatchObject([{ seq: 2 }, { seq: 4 }, { seq: 11 }]);
    expect(items.length).toBeGreaterThan(damaged.length);
    expect((await page.session({ session })).session).toBe(session);
  }
  expect((await page.lineage({ session: 'root' })).rows.length).toBeGreaterThan(3);
  expect((await page.parting({ a: 'main', b: 'sibling' })).b.entries).toBeGreaterThan(0);
  expect((await page.usage({ session: 'main', tree: true })).total).toBeDefined();
  const { findings } = await embeddedData(data).findings({ session: 'root' });
  expect(findings.map(({ session, seq }) => `${session}@${seq}`)).toEqual(
    expect.arrayContaining(['root@2', 'root@4', 'root@11']),
  );
});

test('a part of a damaged message that has no text shows none', async () => {
  using home = memoryHome();
  home.session('main', assistant('So.'));
  const content = [{ type: 'text' }, null, 5, { type: 'reasoning' }, { type: 'text', text: 'So.' }];
  const payload = JSON.stringify({ role: 'assistant', content });
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    db.run(`UPDATE entry SET payload = '${payload}' WHERE kind = 'message'`);
  }
  using store = home.open();
  const { items } = await pageOn(store).timeline({ session: 'main', from: 1, to: 200 });
  const shown = items.flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text : part.type)));
  expect(shown).toEqual(['', 'So.']);
});

test('no text of a tape is part of the markup of the file, and nothing but its own code can run', async () => {
  using home = memoryHome();
  const hostile = '</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>';
  {
    using store = home.open();
    store.sessions.open('main', { title: hostile });
    store.entries.append('main', [
      user(hostile),
      assistant([toolCall('c', hostile, { [hostile]: hostile })]),
    ]);
  }
  const { html, data } = await exported(home, 'main');
  expect(JSON.stringify(data)).toContain('onerror=alert(1)');
  expect(html).not.toContain('onerror=');
  expect(html.match(/<\/?script\b/gi)).toHaveLength(6);
  expect(html).not.toMatch(/<\/?style\b|\b(?:src|href)=|https?:/);
  const hashOf = (text = '') => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const [, opening] = /<script type="module">(.*)<\/script>/s.exec(html) ?? [];
  const [, packed = ''] = /id="tapedeck-page">([^<]*)</.exec(html) ?? [];
  const [style, script] = JSON.parse(gunzipSync(Buffer.from(packed, 'base64')).toString()) as string[];
  expect(html).toContain(
    `content="default-src 'none'; script-src ${hashOf(opening)} ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:; base-uri 'none'; form-action 'none'"`,
  );
  expect(opening).not.toMatch(/innerHTML|eval|Function|import/);
});

test.each([
  ['small', 3],
  ['middle', 40],
  ['large', 400],
])('beside the page, a %s file is at most one and a half times the text of its session', async (_, turns) => {
  using home = memoryHome();
  const words = 'a the plan of test release build with fails passes module file change now then error'.split(
    ' ',
  );
  const random = seeded(7);
  const say = (count: number) =>
    Array.from({ length: count }, () => `${random.of(words)}${random.below(1000)}`).join(' ');
  {
    using store = home.open();
    store.sessions.open('main');
    for (let n = 0; n < turns; n += 1) {
      store.entries.append('main', [user(say(15)), assistant([toolCall(`c${n}`, 'read', { path: say(1) })])]);
      const result = toolResult({ toolCallId: `c${n}`, toolName: 'read' }, say(40));
      store.entries.append('main', [result, assistant(say(60), { model: 'a/b', usage })]);
    }
  }
  const { html } = await exported(home, 'main');
  const [, data = ''] = /id="tapedeck-data">([^<]*)</.exec(html) ?? [];
  const text = home.file('text.md');
  await home.here(['export', 'main', '--format', 'markdown', '-o', text]);
  const { size } = statSync(text);
  expect(html.length - data.length).toBeLessThan(140_000);
  expect(data.length / size).toBeLessThan(1.5);
  // Where there is more text than the page takes, it is so of the whole file.
  if (size > 130_000) expect(html.length / size).toBeLessThan(1.5);
  expect(size > 130_000).toBe(turns === 400);
});
