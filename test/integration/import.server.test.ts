import { mkdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import type { HomeStore, SqliteTapeStore } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import {
  branchedTranscript,
  branchedSession as session,
  shownIn,
  subagentOfBranched,
} from '../support/branched-transcript.ts';
import { startTape } from '../support/cli.ts';
import { importFiles } from '../support/import-files.ts';
import { serverPlace } from '../support/postgres.ts';
import { sized } from '../support/size.ts';
import { slowLink } from '../support/slow-link.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

/** A directory with a session that has a branch, a subagent and a copy that goes on elsewhere. */
function transcripts() {
  const dir = tempDir();
  const lines = branchedTranscript(60_000);
  mkdirSync(dir.file(`${session}/subagents`), { recursive: true });
  writeFileSync(dir.file(`${session}.jsonl`), `${lines.join('\n')}\n`);
  writeFileSync(dir.file(`${session}/subagents/agent-x.jsonl`), subagentOfBranched);
  const copy = session.replace('5f3c', '6f3c');
  const records = lines.slice(0, 8).map((line) => JSON.parse(line.replaceAll(session, copy)));
  const { uuid } = records.findLast((one) => one.uuid !== undefined);
  records.push(person({ uuid: 'c1', parent: uuid }, 'go on elsewhere', { sessionId: copy }));
  writeFileSync(dir.file(`${copy}.jsonl`), jsonl(records));
  return dir;
}

/** Imports in a process of its own, into a home on a server. */
const importing = (dir: string, url: string, home: string) =>
  startTape(['import', dir, '--yes', '--json', '--home', url], { env: { HOME: home } });

test('an import into a home on a server that is killed behind any round trip shows no part of a session, and ends as one', {
  timeout: 300_000,
}, async () => {
  using dir = transcripts();
  using once = openStore();
  await importFiles(once, [dir.path]);
  const whole = shownIn(once);
  expect(Object.keys(whole.views).length).toBe(4);
  /** Makes an empty home, and imports over a link that counts. */
  const begun = async () => {
    const place = await serverPlace();
    (await place.openHome())[Symbol.dispose]();
    const link = await slowLink(place.url);
    return { place, link, user: tempDir() };
  };
  const trips = await (async () => {
    const { place, link, user } = await begun();
    expect((await importing(dir.path, link.url, user.path).done).code).toBe(0);
    const { trips } = link;
    await link[Symbol.asyncDispose]();
    await place[Symbol.asyncDispose]();
    user[Symbol.dispose]();
    return trips;
  })();
  const stops = sized(2, 4, 60);
  for (let i = 1; i <= stops; i += 1) {
    const stop = Math.ceil((trips * i) / (stops + 1));
    const { place, link, user } = await begun();
    link.stopAfter(stop);
    const { child, done } = importing(dir.path, link.url, user.path);
    while (link.trips < stop && child.exitCode === null) await sleep(5);
    child.kill('SIGKILL');
    expect([stop, (await done).code]).toEqual([stop, 137]);
    await link[Symbol.asyncDispose]();
    using home = await place.openHome();
    const { views } = shownIn(home);
    expect([stop, whole.views]).toEqual([stop, expect.objectContaining(views)]);
    const again = async () => await importFiles(home as SqliteTapeStore, [dir.path]);
    const { done: ended } = await again();
    expect(ended.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect([stop, shownIn(home)]).toEqual([stop, whole]);
    const sessions = (await again()).done.flatMap(({ brought }) => brought?.sessions ?? []);
    expect(sessions.filter(({ added, created }) => added > 0 || created)).toEqual([]);
    expect(home.imports.unfinished()).toEqual([]);
    expect([...home.verify()]).toEqual([]);
    user[Symbol.dispose]();
    await place[Symbol.asyncDispose]();
  }
});

test.each(['imports.publish', 'imports.append'])(
  'a copy that is imported into a home on a server has nothing of what is erased there just before %s',
  async (method) => {
    const records = (sessionId: string, more: readonly object[]) => [
      person({ uuid: 'u1' }, 'aardvark', { sessionId }),
      model({ uuid: 'a1', parent: 'u1' }, [says('an aardvark')], { sessionId }),
      ...more,
    ];
    const take = (store: HomeStore, all: readonly object[]) => {
      const { records: lines } = parseJsonLines([Buffer.from(jsonl(all))]);
      return reconcile(store, planClaudeCode({ name: 'file', lines }));
    };
    await using place = await serverPlace();
    using store = await place.openHome();
    using other = await place.openHome();
    take(store, records('s-1', []));
    const seqs = [...other.entries.read('s-1', { own: true, kind: 'message' })].map(({ seq }) => seq);
    let isErased = false;
    const erasing = wrapStore(store as SqliteTapeStore, ({ method: called, act }) => {
      if (called === method && !isErased) {
        isErased = true;
        other.entries.redact('s-1', seqs, 'private');
      }
      return act();
    });
    const own = person({ uuid: 'c0', parent: null }, 'first', { sessionId: 's-2' });
    const [asked, said] = records('s-2', []);
    const copy = [
      own,
      { ...asked, parentUuid: 'c0' },
      said,
      person({ uuid: 'c2', parent: 'a1' }, 'then', { sessionId: 's-2' }),
    ];
    const done = take(erasing, copy as object[]);
    expect([isErased, done.map(({ refused }) => refused)]).toEqual([true, [undefined]]);
    const shown = JSON.stringify(shownIn(other));
    expect(shown).not.toContain('aardvark');
    for (const text of ['first', 'then']) expect(shown).toContain(text);
    expect(store.imports.unfinished()).toEqual([]);
    expect([...store.verify()]).toEqual([]);
  },
);
