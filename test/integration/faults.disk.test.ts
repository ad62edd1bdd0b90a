import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { openJournal } from '@tapedeck/graph/journal';
import { assistant, openTapeStore, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { jsonError, tapeHere, tapeProcess } from '../support/cli.ts';
import { openDeck } from '../support/deck.ts';
import { type FaultPlace, faultPlace } from '../support/fault-acts.ts';
import { damage } from '../support/fault-check.ts';
import { diskFault, obstacles, smallDisk, tapeUnder } from '../support/obstacle.ts';
import { startProvider } from '../support/provider.ts';
import { eventsOf } from '../support/scripted.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const fault = (() => {
  using dir = tempDir();
  return diskFault(dir.path);
})();
if (fault !== undefined) console.warn(`skipped: full and read-only disks; ${fault}`);

interface Command {
  readonly args: readonly string[];
  readonly stdin?: string;
}

/** Each command that changes something, in a home that `prepare` made. */
const commands: Readonly<Record<string, (dir: string) => Command>> = {
  append: () => ({
    args: ['append', 'main'],
    stdin: `${JSON.stringify({ role: 'user', content: `words ${'x'.repeat(60_000)}` })}\n`,
  }),
  fork: () => ({ args: ['fork', 'main', '--as', 'kid', '--task', 'y'.repeat(20_000)] }),
  merge: () => ({ args: ['merge', 'ada'] }),
  run: (dir) => ({ args: ['run', 'main', 'hello', '--model', `script:${join(dir, 'answers.json')}`] }),
  import: (dir) => ({ args: ['import', join(dir, 'transcript.jsonl'), '--as', 'imported'] }),
  backup: (dir) => ({ args: ['backup', join(dir, 'copies', 'copy.db')] }),
  export: (dir) => ({ args: ['export', 'ada', '-o', join(dir, 'copies', 'ada.tape')] }),
  'import of a bundle': (dir) => ({ args: ['import', join(dir, 'bundle.tape')] }),
  'import of a compressed bundle': (dir) => ({ args: ['import', join(dir, 'bundle.tape.gz')] }),
  redact: () => ({ args: ['redact', 'main@2', '--reason', 'a key'] }),
  'doctor --fix': () => ({ args: ['doctor', '--fix'] }),
  checkpoint: () => ({ args: ['raw', 'checkpoint'] }),
};

/** The part of the obstacle that a message must name. */
const named = {
  ENOSPC: /full|no space/,
  EFBIG: /disk I\/O|too large/,
  EROFS: /read-?only|unable to open/i,
  EACCES: /permission denied|unable to open|readonly/i,
  EMFILE: /too many open files|unable to open/,
} as const;

type Code = keyof typeof named;
const all = Object.keys(commands);
const every: readonly (readonly [Code, string])[] = [
  ...all.map((command) => ['ENOSPC', command] as const),
  ...all.map((command) => ['EROFS', command] as const),
  ...all
    .filter((command) => command !== 'backup' && command !== 'export')
    .map((command) => ['EACCES', command] as const),
  ...['append', 'fork', 'merge', 'import', 'import of a bundle', 'backup', 'export'].map(
    (command) => ['EFBIG', command] as const,
  ),
  ...['append', 'fork', 'backup', 'import of a bundle'].map((command) => ['EMFILE', command] as const),
];
/** Each command once, and each obstacle. */
const once: readonly (readonly [Code, string])[] = [
  ['ENOSPC', 'append'],
  ['ENOSPC', 'import'],
  ['ENOSPC', 'backup'],
  ['EROFS', 'merge'],
  ['EROFS', 'doctor --fix'],
  ['EACCES', 'run'],
  ['EACCES', 'redact'],
  ['EROFS', 'checkpoint'],
  ['EFBIG', 'fork'],
  ['EMFILE', 'append'],
];
/** Each command on a full disk, and each obstacle. */
const full = every.filter(
  ([code, command]) => code === 'ENOSPC' || once.some((one) => one[0] === code && one[1] === command),
);
const cases = sized(once, full, every);
/** The command again, on a disk with room: only in a soak, a process shows what this one does not. */
const tapeAgain = sized(tapeHere, tapeHere, tapeProcess);

describe('a command on a full or forbidden disk', () => {
  for (const [code, command] of cases)
    test.skipIf(obstacles[code].ownDisk && fault !== undefined)(
      `${code}: ${command} is refused, changes nothing, and succeeds when repeated`,
      async () => {
        const obstacle = obstacles[code];
        using dir = tempDir();
        using disk = obstacle.ownDisk ? smallDisk(dir.path) : undefined;
        const base = disk?.path ?? dir.path;
        const place = prepare(base);
        const before = look(place);
        const { args, stdin = '' }: Command = commands[command]?.(base) ?? { args: [] };
        const line = [...args, '--json'];
        const options = { home: place.dir, stdin };
        obstacle.put(base);
        try {
          const refused = await tapeUnder(obstacle, line, options);
          expect(refused.code, refused.stdout + refused.stderr).not.toBe(0);
          const { code: type, message } = jsonError(refused);
          expect(type).toMatch(/^(?:TAPE|GRAPH|SESSION)_/);
          expect(message).toMatch(named[code]);
          if (code === 'ENOSPC') await readsWork(place);
        } finally {
          obstacle.lift(base);
        }
        expect(readdirSync(join(base, 'copies'))).toEqual([]);
        expect(look(place)).toEqual(before);
        const done = await tapeAgain(line, options);
        expect(done.code, done.stderr).toBe(0);
        look(place);
      },
    );
});

describe.skipIf(fault !== undefined)('raw traffic on a disk that is full', () => {
  test('is a warning of the run, and is kept again once there is room', async () => {
    using dir = tempDir();
    using disk = smallDisk(dir.path);
    using store = openStore();
    await using provider = await startProvider(() => ({ text: 'Fine.' }));
    await using deck = await openDeck({
      store,
      home: disk.path,
      model: 'openai-compatible/m',
      env: provider.env,
      record: 'raw',
    });
    const main = await deck.session('main');
    await main.run('Go');
    const file = join(disk.path, 'logs', main.id, 'raw.jsonl');
    obstacles.ENOSPC.put(disk.path);
    const run = main.run(`Go ${'on '.repeat(20_000)}`);
    expect(await run).toMatchObject({ text: 'Fine.', finish: 'stop' });
    const warnings = (await eventsOf(run)).flatMap((event) =>
      event.type === 'warning' ? [event.message] : [],
    );
    expect(warnings).toContainEqual(
      expect.stringMatching(/^cannot keep the raw traffic of 'main': .*no space left/i),
    );
    obstacles.ENOSPC.lift(disk.path);
    await main.run('Go');
    await deck.close();
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ type: 'request' });
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'end' });
  });
});

/** A home, a transcript, a script for a model, and room for a backup. */
function prepare(base: string): FaultPlace {
  const place = faultPlace(base);
  mkdirSync(join(base, 'copies'));
  {
    // A disk on which a file is open cannot be made read-only.
    using journal = openJournal(place.graph);
    using store = openTapeStore(place.db, { journal });
    store.sessions.open('main');
    store.entries.append('main', [user('question'), assistant('answer')]);
    store.lineage.fork('main', { name: 'ada' });
    store.entries.append('ada', [user('task'), assistant(`result ${'r'.repeat(50_000)}`)]);
  }
  const records = Array.from({ length: 40 }, (_, i) => {
    const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const role = i % 2 === 0 ? 'user' : 'assistant';
    const content = [{ type: 'text', text: `part ${i} ${'z'.repeat(3000)}` }];
    const message = { id: `m${i}`, role, content };
    return {
      type: role,
      uuid: uuid(i),
      parentUuid: i === 0 ? null : uuid(i - 1),
      sessionId: uuid(99),
      message,
    };
  });
  writeFileSync(
    join(base, 'transcript.jsonl'),
    records.map((record) => `${JSON.stringify(record)}\n`).join(''),
  );
  writeFileSync(join(base, 'answers.json'), JSON.stringify([{ text: 'scripted' }]));
  writeBundle(join(base, 'bundle.tape'));
  return place;
}

/** A session of another home, of more bytes than an obstacle leaves, whose numbers no compression makes small. */
function writeBundle(file: string): void {
  using store = openTapeStore(':memory:');
  store.sessions.open('theirs');
  store.entries.append('theirs', [user(Buffer.from(bytesOf(40_000)).toString('hex'))]);
  const lines = [...store.bundles.write('theirs', { secrets: [], raw: true })].join('');
  writeFileSync(file, lines);
  writeFileSync(`${file}.gz`, gzipSync(lines));
}

function bytesOf(count: number): Uint8Array {
  const random = seeded(1);
  return Uint8Array.from({ length: count }, () => random.below(256));
}

async function readsWork(place: FaultPlace): Promise<void> {
  for (const args of [['log', 'main'], ['show', 'main@2'], ['sessions'], ['verify']]) {
    const { code, stderr } = await tapeHere(args, { home: place.dir });
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' });
  }
}

/** The sessions and their entries; all of it must verify. */
function look(place: FaultPlace): unknown {
  using journal = openJournal(place.graph);
  using store = openTapeStore(place.db, { journal });
  expect([...damage(store, place)]).toEqual([]);
  return store.sessions.list().map(({ session: name, head, delivery }) => ({ name, head, delivery }));
}
