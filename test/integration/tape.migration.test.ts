import { copyFileSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { assistant, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { toSchema0 } from '../support/old-schemas.ts';
import { facts, rawDb } from '../support/raw-db.ts';
import { atFullSize, sized } from '../support/size.ts';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';
import { startWorker } from '../support/worker.ts';

/** A home of schema 0 with a fork, a merge, and a call that is open. */
function oldHome(path: string): void {
  {
    using store = openTapeStore(path);
    store.sessions.open('main');
    store.entries.append('main', [user('one'), assistant('two')]);
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant('done')]);
    store.lineage.merge('child');
    store.entries.append('main', [assistant([toolCall('c1', 'read', {}), toolCall('c2', 'read', {})])]);
    store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, 'of c1')]);
  }
  toSchema0(path);
}

function factsOf(path: string): string {
  using db = rawDb(path);
  return facts(db);
}

describe('a home of an older schema', () => {
  test('is upgraded without changing a fact, and kept as a copy beside it', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    oldHome(path);
    const before = factsOf(path);
    {
      using store = openTapeStore(path);
      expect([...store.verify()]).toEqual([]);
      expect([...store.examine()]).toEqual([]);
      // The notes on open calls are there again: one is still open, and its result settles the tape.
      expect(store.lineage.fork('main', { name: 'later' }).base).toBe(store.sessions.find('main')?.settled);
    }
    const copy = `${path}.schema-0`;
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(factsOf(copy)).toBe(before);
    {
      using db = rawDb(copy);
      expect(db.all('PRAGMA user_version')).toEqual([{ user_version: 0 }]);
    }
    expect(readdirSync(dir.path).sort()).toEqual(['tape.db', 'tape.db.schema-0']);
    using store = openTapeStore(path);
    store.entries.append('main', [toolResult({ toolCallId: 'c2', toolName: 'read' }, 'of c2')]);
    expect(store.sessions.find('main')).toMatchObject({ settled: store.sessions.find('main')?.head });
  });

  test('is not read as if it were new, and reading writes nothing', async () => {
    using home = tempHome();
    oldHome(home.db);
    const before = readFileSync(home.db);
    expect(refusal(() => openTapeStore(home.db, { readonly: true }))).toMatchObject({
      code: 'TAPE_SCHEMA_OLDER',
      data: { found: 0 },
    });
    const log = await home.here(['log', 'main']);
    expect([log.code, log.stderr]).toEqual([1, expect.stringContaining('tape raw checkpoint')]);
    expect(readFileSync(home.db).equals(before)).toBe(true);
    expect((await home.here(['raw', 'checkpoint'])).code).toBe(0);
    expect((await home.here(['log', 'main', '--oneline'])).code).toBe(0);
    expect((await home.here(['doctor'])).code).toBe(0);
  });

  test.runIf(atFullSize)(
    'is upgraded once, by one of many processes that open it at the same moment',
    async () => {
      using dir = tempDir();
      const path = dir.file('tape.db');
      oldHome(path);
      const workers = await Promise.all(
        Array.from({ length: sized(5, 16, 16) }, () => startWorker(path, 'open')),
      );
      for (const worker of workers) worker.go();
      const said = (await Promise.all(workers.map((worker) => worker.done()))).flat();
      expect(said.filter((fact) => (fact as { created: boolean }).created)).toEqual([]);
      expect(readdirSync(dir.path).filter((name) => name.includes('schema'))).toEqual(['tape.db.schema-0']);
      using store = openTapeStore(path);
      expect([...store.verify()]).toEqual([]);
    },
  );

  test('that does not match its version stays unchanged', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    openTapeStore(path).close();
    {
      using db = rawDb(path);
      db.exec('PRAGMA user_version = 0');
    }
    const before = factsOf(path);
    const error = refusal(() => openTapeStore(path));
    expect([error.code, error.message]).toEqual(['TAPE_CORRUPT', expect.stringContaining('open_calls')]);
    expect(factsOf(path)).toBe(before);
    using db = rawDb(path);
    expect(db.all('PRAGMA user_version')).toEqual([{ user_version: 0 }]);
  });

  test('whose upgrade was killed is upgraded by the next process, with a second copy', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    oldHome(path);
    copyFileSync(path, `${path}.schema-0`);
    openTapeStore(path).close();
    expect(readdirSync(dir.path).sort()).toEqual(['tape.db', 'tape.db.schema-0', 'tape.db.schema-0.2']);
    expect(factsOf(`${path}.schema-0.2`)).toBe(factsOf(`${path}.schema-0`));
  });
});
