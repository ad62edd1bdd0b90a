import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const pageSize = 4096;
const pages = sized(8, 10, 1_000);

test(`${pages} damaged pages of the database are findings of tape check, and stop none of its parts`, {
  timeout: 600_000,
}, async () => {
  using home = tempHome();
  const text = 'x'.repeat(900);
  {
    using store = home.open();
    for (const name of ['a', 'b', 'c']) {
      store.sessions.open(name);
      for (let n = 0; n < 6; n += 1) store.entries.append(name, [user(text), assistant(text)]);
      store.lineage.fork(name, { name: `${name}-child`, intention: { nextSteps: 'Go' } });
      store.entries.append(`${name}-child`, [assistant('Done.')]);
      store.lineage.merge(`${name}-child`);
    }
    store.checkpoint();
  }
  expect((await home.here(['check'])).code).toBe(0);
  const whole = readFileSync(home.db);
  const random = seeded(20261123);
  const count = whole.length / pageSize;
  const chosen = new Set(
    Array.from({ length: Math.min(pages, count - 1) }, () => 1 + random.below(count - 1)),
  );
  for (const page of chosen) {
    using copy = tempHome();
    copyFileSync(home.graph, copy.graph);
    const bytes = Buffer.from(whole);
    bytes.fill(0xff, page * pageSize, page * pageSize + 64);
    writeFileSync(copy.db, bytes, { mode: 0o600 });
    const checked = await copy.here(['check', '--json']);
    const { sections } = json(checked) as { sections: Record<string, { findings: { code: string }[] }> };
    const codes = sections.integrity?.findings.map(({ code }) => code) ?? [];
    // The pages of an index of times or of the search are in no other check than that of SQLite.
    expect([page + 1, checked.code, codes.includes('database-damaged')]).toEqual([page + 1, 5, true]);
    const quiet = await copy.here(['check', '--quiet']);
    expect([quiet.code, quiet.stdout]).toEqual([5, 'damaged\n']);
    const doctor = await copy.here(['doctor', '--quiet']);
    expect(doctor.code).toBe(5);
  }
});
