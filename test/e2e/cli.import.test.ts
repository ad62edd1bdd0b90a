import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

/** A transcript whose records follow one another, by name. */
const transcript = (...names: string[]): string =>
  names
    .map((name, i) => ({
      type: i % 2 === 0 ? 'user' : 'assistant',
      uuid: `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padStart(12, '0')}`,
      parentUuid:
        i === 0
          ? null
          : `00000000-0000-4000-8000-${Buffer.from(names[i - 1] ?? '')
              .toString('hex')
              .padStart(12, '0')}`,
      sessionId: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
      message: {
        id: name,
        role: i % 2 === 0 ? 'user' : 'assistant',
        content: [{ type: 'text', text: name }],
      },
    }))
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');

test('importing a transcript that has grown adds the new records; one that diverged is refused', async () => {
  using home = tempHome();
  using dir = tempDir();
  const file = dir.file('transcript.jsonl');
  const importing = async (...names: string[]) => {
    writeFileSync(file, transcript(...names));
    return await home.tape(['import', file, '--as', 'main', '--json']);
  };
  expect((await importing('a', 'b')).code).toBe(0);
  expect(JSON.parse((await importing('a', 'b', 'c', 'd')).stdout)).toMatchObject({ entries: 2 });
  expect(JSON.parse((await importing('a', 'b', 'c', 'd')).stdout)).toMatchObject({ entries: 0 });
  const before = home.contents();
  const other = await importing('a', 'b', 'e', 'f');
  expect(other.code).toBe(4);
  expect(JSON.parse(other.stderr)).toMatchObject({
    error: { code: 'TAPE_CONFLICT', data: { session: 'main', seq: 5 } },
  });
  expect(home.contents()).toEqual(before);
});

test('a transcript with a message that cannot be stored leaves nothing, not even its name', async () => {
  using home = tempHome();
  using dir = tempDir();
  home.session('other');
  const file = dir.file('large.jsonl');
  writeFileSync(file, transcript('a', 'b').replace('"text":"b"', `"text":"${'x'.repeat(17 * 1024 * 1024)}"`));
  const before = home.contents();
  expect(await home.tape(['import', file, '--as', 'main'])).toMatchObject({ code: 2, stdout: '' });
  expect(home.contents()).toEqual(before);
  expect(await home.tape(['new', 'main'])).toMatchObject({ code: 0 });
});
