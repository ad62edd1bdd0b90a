import {
  allVerbs,
  commonOptions,
  nameOf,
  type Option,
  readLine,
  type Verb,
  verbFirst,
  verbNamed,
  withLiteralWords,
  wordsOf,
} from '@tapedeck/cli/internal';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assertParsersAgree } from '../support/parsers.ts';
import { sized } from '../support/size.ts';

const verbs = await allVerbs();

/** Words that a shell passes, among them those that parsers read in different ways. */
const word = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[a-z][\w@.:-]{0,8}$/) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...['', '-', '--', '0', '7', '007', '1.5', '1e3', '-1', '9007199254740993', 'true', 'false', 'help'],
      ...[
        '-n',
        '-x',
        '-f',
        '-fn',
        '-h',
        '--no-color',
        '--no-wait',
        '--no-own',
        '--no-json',
        '--dry',
        '--help',
      ],
      ...["'quoted'", '"a b"', "'half", 'a=b', '--json=true', '--=x', '---', 'é', 'two words', '__proto__'],
      ...['--__proto__', '--constructor', '--toString', '@-', '\n', 'a\nb'],
    ),
  },
);

function optionWords(name: string, { type, alias, choices }: Option): fc.Arbitrary<string[]> {
  const named = fc.constantFrom(`--${name}`, ...(alias === undefined ? [] : [`-${alias}`]));
  const usual =
    choices !== undefined ? fc.constantFrom(...choices) : type === 'number' ? fc.nat(50).map(String) : word;
  const value = fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: word });
  if (type === 'boolean')
    return fc.oneof(
      { weight: 5, arbitrary: named.map((one): string[] => [one]) },
      value.map((text) => [`--${name}=${text}`]),
    );
  return fc.oneof<fc.MaybeWeightedArbitrary<string[]>[]>(
    { weight: 4, arbitrary: fc.tuple(named, value).map((pair): string[] => [...pair]) },
    { weight: 1, arbitrary: value.map((text) => [`--${name}=${text}`]) },
    { weight: 1, arbitrary: fc.constantFrom([`--no-${name}`], [`--${name}`], [name]) },
  );
}

/** A command line of a verb: about what its grammar wants, with options of its own and of all verbs, in any order. */
function lineOf(verb: Verb): fc.Arbitrary<string[]> {
  const options = { ...commonOptions, ...verb.options } as Readonly<Record<string, Option>>;
  const one = fc
    .constantFrom(...Object.entries(options))
    .chain(([name, option]) => optionWords(name, option));
  const required = Object.entries(options).flatMap(([name, option]) =>
    option.required === true ? [optionWords(name, option)] : [],
  );
  const wanted = wordsOf(verb).length;
  return fc
    .tuple(
      fc
        .array(word, { minLength: Math.max(0, wanted - 1), maxLength: wanted + 1 })
        .map((all) => all.map((text) => [text])),
      fc.array(one, { maxLength: 3 }),
      fc.tuple(...required),
    )
    .chain(([words, some, needed]) =>
      fc.shuffledSubarray([...words, ...some, ...needed], { minLength: words.length }),
    )
    .map((parts) => [nameOf(verb), ...parts.flat()]);
}

const lines = sized(120, 200, 100_000);

test(`both parsers read each of ${lines} random command lines alike, or one refuses it`, {
  timeout: 3_600_000,
}, async () => {
  let plain = 0;
  const any = fc.constantFrom(...verbs).chain(lineOf);
  await fc.assert(
    fc.asyncProperty(any, async (line) => {
      if (await assertParsersAgree(line)) plain += 1;
    }),
    { numRuns: lines },
  );
  expect(plain).toBeGreaterThan(lines / 10);
});

/** How each message about a command line begins. */
const ownWords =
  /^(?:cannot (?:use|read) -|cannot use (?:'|"|[a-z]+ ")|arguments are missing: expected tape |--)/;

test(`a command line that is refused is refused in words of our own`, async () => {
  let refused = 0;
  const any = fc.constantFrom(...verbs).chain((verb) => lineOf(verb).map((line) => ({ verb, line })));
  await fc.assert(
    fc.asyncProperty(any, async ({ verb, line }) => {
      const argv = verbFirst(withLiteralWords(line));
      const error = await readLine(argv, verb).then(
        () => undefined,
        (fault: Error & { code?: string }) => fault,
      );
      if (error === undefined) return;
      refused += 1;
      expect(error.code, line.join(' ')).toBe('CLI_USAGE');
      expect(error.message).toMatch(ownWords);
    }),
    { numRuns: lines },
  );
  expect(refused).toBeGreaterThan(lines / 10);
});

test('command lines without quotes, as the help shows them, are plain', async () => {
  for (const { examples } of verbs)
    for (const [command] of examples) {
      const [tape, ...words] = command.split(' ');
      if (tape !== 'tape' || /['"|>-]$|['"|<>$]/.test(command)) continue;
      expect([command, await assertParsersAgree(words)]).toEqual([command, true]);
    }
});

test('every name of a verb loads it', async () => {
  for (const verb of verbs)
    for (const name of [nameOf(verb), ...(verb.aliases ?? []), ...(verb.synonyms ?? [])])
      expect(await verbNamed(name)).toBe(verb);
  for (const name of ['', 'logz', '__proto__', 'constructor']) expect(await verbNamed(name)).toBeUndefined();
});
