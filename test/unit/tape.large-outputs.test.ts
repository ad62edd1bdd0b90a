import {
  assistant,
  type Json,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isTextRef, restoreBlobs } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

const large = 300 * 1024;

/** A session whose tool gave this output. */
function gave(store: SqliteTapeStore, output: Json): void {
  store.sessions.open('main');
  store.entries.append('main', [user('go'), assistant([toolCall('c1', 'read', {})])]);
  store.entries.append('main', [toolResult({ toolCallId: 'c1', toolName: 'read' }, output)]);
}

const outputOf = (store: SqliteTapeStore): { type: Json; value: Json } => {
  const [entry] = store.entries.read('main', { last: 1 });
  const payload = isObject(entry?.payload) ? entry.payload : {};
  return payload.output as { type: Json; value: Json };
};

describe('a large output of a tool', () => {
  test.each<[string, Json, 'text' | 'value']>([
    ['a text', `${'héllo wörld '.repeat(large / 10)}end`, 'text'],
    [
      'a text that ends half a character early where it is cut',
      `${'a'.repeat(16_383)}😀${'b'.repeat(large)}`,
      'text',
    ],
    ['a text with a lone surrogate', `\ud800${'x'.repeat(large)}`, 'value'],
    [
      'a JSON value',
      { rows: Array.from({ length: 40_000 }, (_, i) => ({ i, ['__proto__']: 'x' })) },
      'value',
    ],
  ])('is stored beside its entry, and returned unchanged: %s', (_, output, as) => {
    using store = openTapeStore(':memory:');
    gave(store, output);
    const { value } = outputOf(store);
    if (!isTextRef(value)) throw new TypeError('it is not kept elsewhere');
    expect([value.as, value.preview.length <= 16_384, value.preview.isWellFormed()]).toEqual([
      as,
      true,
      true,
    ]);
    expect(restoreBlobs(value, (hash) => store.entries.blob(hash))).toEqual(output);
    expect(store.entries.blob(value.hash).byteLength).toBe(value.size);
    expect([...store.verify()]).toEqual([]);
  });

  test('is read in ranges of bytes', () => {
    using store = openTapeStore(':memory:');
    gave(store, Array.from({ length: large / 4 }, (_, i) => String(i).padStart(4, '0')).join(''));
    const { value } = outputOf(store);
    if (!isTextRef(value)) throw new TypeError('it is not kept elsewhere');
    const text = (range: { from?: number; to?: number }) =>
      Buffer.from(store.entries.blob(value.hash, range)).toString();
    expect(text({ from: 4000, to: 4008 })).toBe('10001001');
    expect(text({ to: 4 })).toBe('0000');
    expect(text({ from: value.size - 5 })).toBe(text({}).slice(-5));
    expect([text({ from: value.size + 10 }), text({ from: 8, to: 4 })]).toEqual(['', '']);
    expect(refusal(() => store.entries.blob('0'.repeat(64), { from: 1 })).code).toBe('TAPE_NO_BLOB');
  });

  test('is shown to a model by its beginning, with its size', () => {
    using store = openTapeStore(':memory:');
    gave(store, 'line\n'.repeat(large));
    const tool = view(store.views.entries('main')).messages.at(-1);
    const text = JSON.stringify(tool);
    expect(text.length).toBeLessThan(24_000);
    expect(tool?.content[0]?.output).toMatchObject({ type: 'text' });
    expect(text).toContain(`has ${5 * large} bytes`);
  });

  test('is stored once however often it is given, in forks too, and a small one stays in its entry', () => {
    using dir = tempDir();
    using store = openTapeStore(dir.file('tape.db'));
    gave(store, 'x'.repeat(large));
    store.entries.append('main', [assistant([toolCall('c2', 'read', {}), toolCall('c3', 'read', {})])]);
    const result = (id: string, output: string) => toolResult({ toolCallId: id, toolName: 'read' }, output);
    store.entries.append('main', [result('c2', 'x'.repeat(large)), result('c3', 'y'.repeat(87_000))]);
    expect(typeof outputOf(store).value).toBe('string');
    store.lineage.fork('main', { name: 'child' });
    using db = rawDb(dir.file('tape.db'));
    expect(db.all('SELECT count(*) AS n FROM blob')).toEqual([{ n: 1 }]);
  });

  test('is the same content when its key is repeated, and verified with its entry', () => {
    using dir = tempDir();
    const path = dir.file('tape.db');
    using store = openTapeStore(path);
    gave(store, 'x');
    store.entries.append('main', [assistant([toolCall('c2', 'read', {})])]);
    const draft = toolResult({ toolCallId: 'c2', toolName: 'read' }, 'z'.repeat(large));
    const first = store.entries.append('main', [draft], { key: 'k' });
    expect(store.entries.append('main', [draft], { key: 'k' })).toMatchObject({ from: first.from, added: 0 });
    using db = rawDb(path);
    db.dropTriggers();
    db.run(`UPDATE blob SET bytes = CAST('changed' AS BLOB)`);
    expect([...store.verify()].map(({ code, seq }) => [code, seq])).toEqual([['blob-changed', first.to]]);
  });

  test('is found by any text in it', () => {
    using store = openTapeStore(':memory:');
    gave(store, `${'filler '.repeat(large)}needle in the hay`);
    expect(store.entries.search({ text: 'needle in the hay' }).hits.map(({ seq }) => seq)).toEqual([4]);
    expect(store.entries.search({ text: 'needle in the wood' }).hits).toEqual([]);
  });

  // Larger than what a push has time for.
  test.runIf(sized(false, true, true))('is refused when it is over the size limit', () => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [assistant([toolCall('c1', 'read', {})])]);
    const draft = toolResult({ toolCallId: 'c1', toolName: 'read' }, 'x'.repeat(64 * 1024 * 1024 + 1));
    expect(refusal(() => store.entries.append('main', [draft])).code).toBe('TAPE_BAD_ENTRY');
    expect(store.sessions.find('main')?.head).toBe(2);
  });

  test('is printed whole, or a part of it, by tape show --output', async () => {
    using home = tempHome();
    const text = `begin\u001b[31m${'x'.repeat(large)}end`;
    {
      using store = home.open();
      gave(store, text);
    }
    const shown = async (...args: string[]) => (await home.here(['show', 'main@4', ...args])).stdout;
    expect((await shown()).length).toBeLessThan(20_000);
    expect(await shown('--output')).toBe(`begin\\u{1b}[31m${'x'.repeat(large)}end\n`);
    expect(await shown('--output', '--raw')).toBe(text);
    expect(JSON.parse(await shown('--output', '--bytes', '0..4', '--json'))).toEqual({
      session: 'main',
      seq: 4,
      size: text.length,
      from: 0,
      to: 5,
      text: 'begin',
    });
    expect((await home.here(['show', 'main@4', '--output', '--bytes', '4..1'])).code).toBe(2);
    expect((await home.here(['show', 'main@2', '--output'])).code).toBe(3);
    expect((await home.here(['show', 'main', '--output'])).code).toBe(2);
  });
});
