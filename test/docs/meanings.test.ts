import { allVerbs, meanings, nameOf, verbNamed } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { jsonError, tapeHere } from '../support/cli.ts';

/** The error of a command line whose verb does not exist. */
async function refusal(...args: string[]) {
  const result = await tapeHere([...args, '--json']);
  expect(result.code).toBe(2);
  return jsonError(result);
}

test.each(Object.entries(meanings))('tape %s suggests %s, which exists', async (word, suggested) => {
  expect(await refusal(word, 'main')).toEqual({
    code: 'CLI_USAGE',
    message: `cannot run '${word}': no such verb; did you mean ${suggested.join(' or ')}?`,
    hint: 'see: tape --help',
    data: {},
  });
  for (const command of suggested) {
    if (command === '--version' || command === 'help') continue;
    const [name = '', ...words] = command.split(' ');
    const verb = await verbNamed(name);
    expect(verb && nameOf(verb)).toBe(name);
    for (const option of words.filter((part) => part.startsWith('--')))
      expect(Object.keys(verb?.options ?? {})).toContain(option.slice(2));
  }
});

test.each([
  ['rm', 'discard or delete'],
  ['mv', 'rename'],
  ['ls-files', undefined],
  ['commit', 'anchor'],
  ['checkout', 'branch'],
  ['switch', 'branch'],
  ['history', 'log'],
  ['ps', 'status'],
  ['fsck', 'check'],
  ['cherry-pick', 'merge --strategy pick'],
  // By letters, where no meaning is known.
  ['lgo', 'log'],
  ['mrege', 'merge'],
  ['delegat', 'delegate'],
  ['recovver', 'recover'],
  ['sess', 'sessions'],
  ['unrewin', 'undo'],
  ['frk', 'fork'],
  ['zzz', undefined],
  ['dele', 'delegate or delete'],
  ['constructor', undefined],
  ['__proto__', undefined],
])('tape %s suggests %s', async (word, suggested) => {
  const hint = suggested === undefined ? '' : `; did you mean ${suggested}?`;
  expect((await refusal(word)).message).toBe(`cannot run '${word}': no such verb${hint}`);
});

test('no word with a meaning is a verb', async () => {
  const words = (await allVerbs()).flatMap((verb) => [nameOf(verb), ...(verb.aliases ?? [])]);
  expect(words.filter((word) => Object.hasOwn(meanings, word))).toEqual([]);
});
